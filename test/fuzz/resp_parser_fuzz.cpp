// SPDX-License-Identifier: BSL-1.0
// Any bytes: read as a whole and in pieces, they give the same replies and the same error.
// Input: 1 byte chooses the limits, 1 byte is the seed of the pieces' sizes, the rest is the stream: as it
// is, or, when the first byte is odd, with every byte from 0x80 on standing for a fragment of RESP.
#include "../support/resp_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace
{

using redlock::test::stream_result;
namespace resp = redlock::resp;

// Two parsers with the same limits, kept for all inputs: an allocation for each would be most of the work.
struct parsers
{
    resp::limits limits;
    resp::parser whole{limits};
    resp::parser pieces{limits};
};

// Small limits too, so that short inputs reach them.
parsers& choose(unsigned choice)
{
    static std::array<parsers, 3> all{{
        {{}},
        {{.depth = 2, .elements = 8, .reply_bytes = 64, .line_bytes = 16}},
        {{.depth = 8, .elements = 32, .reply_bytes = 512, .line_bytes = 512}},
    }};
    return all[choice % all.size()];
}

// Fills the buffer with replies as long as they may be, so that what is half read after them has to be moved
// to its front.
void fill_buffer(resp::parser& parser, std::size_t reply_bytes, std::string_view behind)
{
    const std::span<char> room = parser.prepare();
    std::string stream;
    for (std::size_t left = room.size() - behind.size(); left >= 16;)
    {
        const std::size_t body = std::min(left, reply_bytes) - 12; // The header is up to 8 bytes, the end 2.
        stream += '$' + std::to_string(body) + "\r\n" + std::string(body, 'x') + "\r\n";
        left = room.size() - behind.size() - stream.size();
    }
    const auto fillers = static_cast<std::size_t>(std::count(stream.begin(), stream.end(), '$'));
    stream += behind;
    std::memcpy(room.data(), stream.data(), stream.size());
    parser.commit(stream.size());
    for (std::size_t reply = 0; reply < fillers; ++reply)
    {
        if (parser.next() == nullptr)
        {
            std::abort();
        }
    }
}

// Short inputs become streams that are nearly right. The fuzzer would take long to find those by itself.
std::string with_fragments(std::string_view input)
{
    static constexpr std::array<std::string_view, 28> fragments{"+OK\r\n",     "-ERR x\r\n",
                                                                ":1\r\n",      "$-1\r\n",
                                                                "*-1\r\n",     "_\r\n",
                                                                "#t\r\n",      ",1.5\r\n",
                                                                "(12\r\n",     "$3\r\nabc\r\n",
                                                                "$0\r\n\r\n",  "=5\r\ntxt:a\r\n",
                                                                "!1\r\nE\r\n", "*0\r\n",
                                                                "*1\r\n",      "*2\r\n",
                                                                "*3\r\n",      "%1\r\n",
                                                                "~2\r\n",      ">2\r\n",
                                                                "|1\r\n",      "|0\r\n",
                                                                "\r\n",        "$3\r\n",
                                                                "+",           "$",
                                                                "*",           "-"};
    std::string out;
    for (const char byte : input)
    {
        const auto value = static_cast<unsigned char>(byte);
        if (value < 0x80U)
        {
            out += byte;
        }
        else
        {
            out += fragments[value % fragments.size()];
        }
    }
    return out;
}

// Sizes of 1 to 16 bytes, and now and then a long one.
std::size_t next_size(std::uint32_t& state)
{
    state = state * 1664525U + 1013904223U;
    const std::uint32_t value = state >> 24U;
    return value >= 240 ? value : 1 + value % 16;
}

void require_same(const stream_result& left, const stream_result& right)
{
    if (left != right)
    {
        std::fputs("the pieces are read in another way than the whole\n", stderr);
        std::abort();
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    if (size < 2)
    {
        return 0;
    }
    parsers& chosen = choose(data[0] >> 1U);
    std::uint32_t state = data[1];
    const std::string_view input{reinterpret_cast<const char*>(data) + 2, size - 2};
    const std::string expanded = (data[0] & 1U) != 0 ? with_fragments(input) : std::string{};
    const std::string_view stream = (data[0] & 1U) != 0 ? std::string_view{expanded} : input;

    chosen.whole.reset();
    stream_result whole;
    feed(chosen.whole, stream, whole);

    chosen.pieces.reset();
    stream_result pieces;
    if ((data[1] & 7U) == 0) // Costs more than the others together.
    {
        const std::string_view first = stream.substr(0, next_size(state));
        fill_buffer(chosen.pieces, chosen.limits.reply_bytes, first);
        drain(chosen.pieces, pieces);
        const std::span<char> room = chosen.pieces.prepare();
        std::fill(room.begin(), room.end(), '#'); // Where the bytes were before: nothing may look there.
        feed(chosen.pieces, stream.substr(first.size()), pieces);
    }
    else
    {
        for (std::size_t at = 0; at < stream.size();)
        {
            const std::string_view piece = stream.substr(at, next_size(state));
            feed(chosen.pieces, piece, pieces);
            at += piece.size();
        }
    }
    require_same(whole, pieces);
    return 0;
}
