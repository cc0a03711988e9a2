// SPDX-License-Identifier: BSL-1.0
// The account as an object in a store with conditional writes, as S3 has them. Part of fencing.cpp.
#pragma once

#include "fenced_account.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <cstdint>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

/// The object contains the token and the balance. The token isn't in the metadata, because an ETag of S3 depends on the
/// content alone: it must change when a token is shown.
class fenced_object final : public fenced_account
{
  public:
    fenced_object(const std::string& port, rules obeyed)
        : store_{boost::asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(std::stoi(port))},
          obeyed_{obeyed}
    {
    }

    std::optional<std::int64_t> open(std::uint64_t token) override
    {
        if (obeyed_ == rules::both)
        {
            return replace(token, {});
        }
        seen_ = get();
        return seen_->balance;
    }

    bool write(std::uint64_t token, std::int64_t balance) override
    {
        return replace(token, balance).has_value();
    }

  private:
    using request = boost::beast::http::request<boost::beast::http::string_body>;
    using response = boost::beast::http::response<boost::beast::http::string_body>;
    using status = boost::beast::http::status;

    struct object
    {
        std::string etag;
        std::uint64_t token = 0;
        std::int64_t balance = 0;
    };

    /// Writes the token, and the balance unless it is empty. Returns the balance; empty if a later holder has shown its
    /// token.
    std::optional<std::int64_t> replace(std::uint64_t token, std::optional<std::int64_t> balance)
    {
        for (int attempt = 0; attempt < 100; ++attempt)
        {
            object current = seen_ ? *seen_ : get();
            if (current.token > token && obeyed_ != rules::unchecked)
            {
                return {};
            }
            current.token = token;
            current.balance = balance.value_or(current.balance);
            seen_ = put(current);
            if (seen_)
            {
                return seen_->balance;
            }
            // 412: another holder has written since. Its token decides.
        }
        throw std::runtime_error{"the object is changed all the time"};
    }

    object get() const
    {
        const response reply = send({boost::beast::http::verb::get, "/account/42", 11});
        object found{.etag = std::string{reply[boost::beast::http::field::etag]}};
        if (!(std::istringstream{reply.body()} >> found.token >> found.balance))
        {
            throw std::runtime_error{"the object isn't a token and a balance"};
        }
        return found;
    }

    /// Returns the object with its new ETag. Empty if the stored one doesn't have the given ETag any more.
    std::optional<object> put(object value) const
    {
        request change{boost::beast::http::verb::put, "/account/42", 11};
        if (obeyed_ != rules::unchecked)
        {
            change.set(boost::beast::http::field::if_match, value.etag);
        }
        change.body() = std::to_string(value.token) + ' ' + std::to_string(value.balance);
        const response reply = send(std::move(change));
        if (reply.result() == status::precondition_failed)
        {
            return {};
        }
        if (reply.result() != status::ok)
        {
            throw std::runtime_error{"the store answers " + std::to_string(reply.result_int())};
        }
        value.etag = std::string{reply[boost::beast::http::field::etag]};
        return value;
    }

    response send(request question) const
    {
        boost::asio::io_context io;
        boost::beast::tcp_stream stream{io};
        stream.connect(store_);
        question.set(boost::beast::http::field::host, "127.0.0.1");
        question.keep_alive(false);
        question.prepare_payload();
        boost::beast::http::write(stream, question);
        boost::beast::flat_buffer buffer;
        response reply;
        boost::beast::http::read(stream, buffer, reply);
        return reply;
    }

    boost::asio::ip::tcp::endpoint store_;
    rules obeyed_;
    std::optional<object> seen_; // As it was read or written last.
};
