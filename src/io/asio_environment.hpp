// SPDX-License-Identifier: BSL-1.0
// The real environment: Asio sockets, a timerfd on CLOCK_BOOTTIME, and random numbers from the kernel.
#pragma once

#include "io/tls_context.hpp"
#include "runtime/environment.hpp"

#include <memory>
#include <utility>

namespace redlock::io
{

class asio_environment final : public runtime::environment
{
  public:
    /// `shared` is used for masters over TLS, and may be null if there are none.
    explicit asio_environment(std::shared_ptr<tls_context> shared = nullptr) : tls_{std::move(shared)} {}

    clock::time_point now() const noexcept override;
    void random(std::span<std::byte> out) const noexcept override;
    std::unique_ptr<runtime::stream> make_stream(runtime::scheduler& strand, const master& to) const override;
    std::unique_ptr<runtime::alarm> make_alarm(runtime::scheduler& strand) const override;

  private:
    std::shared_ptr<tls_context> tls_;
};

} // namespace redlock::io
