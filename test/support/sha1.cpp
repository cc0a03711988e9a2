// SPDX-License-Identifier: BSL-1.0
// OpenSSL's SHA-1. Only for the digests of scripts, not for secrets.
#include "sha1.hpp"

#include <array>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

namespace redlock::test
{

std::string sha1_hex(std::string_view bytes)
{
    std::array<unsigned char, 20> digest{};
    if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha1(), nullptr) != 1)
    {
        throw std::runtime_error{"OpenSSL has no SHA-1"};
    }
    return fmt::format("{:02x}", fmt::join(digest, ""));
}

} // namespace redlock::test
