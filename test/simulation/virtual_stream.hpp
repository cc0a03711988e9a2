// SPDX-License-Identifier: BSL-1.0
// The client's end of a virtual connection, as the library sees it.
#pragma once

#include "pending_handlers.hpp"
#include "runtime/environment.hpp"
#include "virtual_link.hpp"

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace redlock::test
{

class virtual_stream final : public runtime::stream, private client_end
{
  public:
    /// `origin` is the process that it belongs to, which counts its streams.
    virtual_stream(
        runtime::scheduler& strand, virtual_world& world, sim_master& to, int origin, std::size_t& count);
    ~virtual_stream() override;

    void connect(runtime::io_operation& operation, clock::time_point until) override;
    void read_some(std::span<char> buffer, runtime::io_operation& operation) override;
    std::size_t write_now(std::span<const char> bytes) noexcept override;
    void write(std::span<const char> bytes, runtime::io_operation& operation) override;
    void close() noexcept override;

  private:
    void on_connected(error_code error) override { handlers_.complete(connecting_, error); }
    void on_bytes(std::string_view bytes) override;
    void on_room() override;
    void on_end(error_code why) override;

    pending_handlers::ticket begin(runtime::io_operation& operation);
    void read();
    void check_what_is_written() const;

    runtime::scheduler& strand_;
    virtual_world& world_;
    pending_handlers& handlers_;
    std::size_t& count_;
    std::shared_ptr<virtual_link> link_;
    bool closed_ = false;
    bool is_late_ = false; // A write had to wait for room, and so may what is written next.

    pending_handlers::ticket connecting_ = 0;
    pending_handlers::ticket reading_ = 0;
    pending_handlers::ticket writing_ = 0;
    std::span<char> buffer_;
    std::string arrived_; // Not read.
    error_code end_;      // After `arrived_`.
    std::span<const char> to_write_;
    std::string as_it_was_; // A copy of the written bytes, to detect changes meanwhile.
};

} // namespace redlock::test
