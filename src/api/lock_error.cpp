// SPDX-License-Identifier: BSL-1.0
// The exception of a failed acquire.
#include <redlock/error.hpp>
#include <redlock/report.hpp>

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace redlock
{

struct lock_error::contents
{
    std::string resource;
    std::string text;
};

lock_error::lock_error(const error_code& error, std::string resource, std::string_view text)
    : system_error{error}
{
    std::string all = text.empty() ? error.message() : std::string{text};
    if (!resource.empty())
    {
        all = fmt::format("{}: {}", short_text{resource}.view(), all);
    }
    contents_ = std::make_shared<const contents>(std::move(resource), std::move(all));
}

lock_error::~lock_error() = default;

const std::string& lock_error::resource() const noexcept
{
    return contents_->resource;
}

const char* lock_error::what() const noexcept
{
    return contents_->text.c_str();
}

} // namespace redlock
