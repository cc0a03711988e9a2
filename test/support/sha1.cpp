// SPDX-License-Identifier: BSL-1.0
// SHA-1 after FIPS 180-4, section 6.1. Only for names of scripts, never for anything secret.
#include "sha1.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

namespace redlock::test
{
namespace
{

constexpr std::size_t block_size = 64;
using digest = std::array<std::uint32_t, 5>;

/// The message with its padding: a one bit, zeros, its length in bits as 64-bit big-endian.
std::string padded(std::string_view bytes)
{
    std::string message{bytes};
    message += '\x80';
    while (message.size() % block_size != block_size - 8)
    {
        message += '\0';
    }
    const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
    for (int shift = 56; shift >= 0; shift -= 8)
    {
        message += static_cast<char>(bits >> shift & 0xff);
    }
    return message;
}

void add_block(digest& sum, std::string_view block)
{
    std::array<std::uint32_t, 80> words{};
    for (std::size_t i = 0; i < 16; ++i)
    {
        for (std::size_t byte = 0; byte < 4; ++byte)
        {
            words[i] = words[i] << 8 | static_cast<unsigned char>(block[4 * i + byte]);
        }
    }
    for (std::size_t i = 16; i < words.size(); ++i)
    {
        words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    }
    auto [a, b, c, d, e] = sum;
    for (std::size_t i = 0; i < words.size(); ++i)
    {
        const std::uint32_t parity = b ^ c ^ d;
        const std::uint32_t mixed = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999U
                                    : i < 40 ? parity + 0x6ed9eba1U
                                    : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdcU
                                             : parity + 0xca62c1d6U;
        const std::uint32_t next = std::rotl(a, 5) + mixed + e + words[i];
        e = d;
        d = c;
        c = std::rotl(b, 30);
        b = a;
        a = next;
    }
    sum = {sum[0] + a, sum[1] + b, sum[2] + c, sum[3] + d, sum[4] + e};
}

} // namespace

std::string sha1_hex(std::string_view bytes)
{
    digest sum{0x67452301U, 0xefcdab89U, 0x98badcfeU, 0x10325476U, 0xc3d2e1f0U};
    const std::string message = padded(bytes);
    for (std::size_t start = 0; start < message.size(); start += block_size)
    {
        add_block(sum, std::string_view{message}.substr(start, block_size));
    }
    std::string text;
    for (const std::uint32_t word : sum)
    {
        text += fmt::format("{:08x}", word);
    }
    return text;
}

} // namespace redlock::test
