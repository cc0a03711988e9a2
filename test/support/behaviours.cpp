// SPDX-License-Identifier: BSL-1.0
// Each misbehaviour is one change to the answers of an honest master.
#include "behaviours.hpp"

#include <optional>
#include <utility>

namespace redlock::test
{
namespace
{

/// Registers a connection with a master for as long as it is served.
class visit
{
  public:
    visit(fake_redis& master, session& where) : master_{master}, who_{master.enter(where)} {}
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() { master_.leave(who_); }

    std::string answer_to(const command& words) { return master_.answer_to(who_, words); }

  private:
    fake_redis& master_;
    fake_redis::client who_;
};

std::shared_ptr<fake_redis> or_new(std::shared_ptr<fake_redis> master)
{
    return master ? std::move(master) : std::make_shared<fake_redis>();
}

bool concerned(applies when, const command& words)
{
    return when == applies::from_the_start || is_lock_command(words);
}

/// Honest, but the affected commands are not carried out, and answered with `what`.
behaviour answers_instead(answer what, applies when, std::shared_ptr<fake_redis> master)
{
    return [what = std::move(what), when, master = or_new(std::move(master))](session& client)
    {
        visit known{*master, client};
        while (const std::optional<command> words = client.read_command())
        {
            client.send(concerned(when, *words) ? what : answer{.bytes = known.answer_to(*words)});
        }
    };
}

/// Honest, but the answers to the affected commands are sent in the manner of `how`.
behaviour answers_so(answer how, applies when, std::shared_ptr<fake_redis> master)
{
    return altered(
        [how = std::move(how)](session&, const command&, std::string bytes)
        {
            answer result = how;
            result.bytes = std::move(bytes);
            return result;
        },
        when, std::move(master));
}

} // namespace

bool is_lock_command(const command& words)
{
    const std::string name = name_of(words);
    const bool has_keys = words.size() > 2 && words[2] != "0";
    return name == "SET" || name == "EVALSHA" || (name == "EVAL" && has_keys);
}

behaviour answering(command_script script)
{
    return [script = std::move(script)](session& client)
    {
        while (const std::optional<command> words = client.read_command())
        {
            client.send(script(client, *words));
        }
    };
}

behaviour honest(honest_options options)
{
    return honest(std::make_shared<fake_redis>(std::move(options)));
}

behaviour honest(std::shared_ptr<fake_redis> master)
{
    return answers_so({}, applies::from_the_start, std::move(master));
}

behaviour altered(alteration change, applies when, std::shared_ptr<fake_redis> master)
{
    return [change = std::move(change), when, master = or_new(std::move(master))](session& client)
    {
        visit known{*master, client};
        while (const std::optional<command> words = client.read_command())
        {
            std::string bytes = known.answer_to(*words);
            if (concerned(when, *words))
            {
                client.send(change(client, *words, std::move(bytes)));
            }
            else
            {
                client.send({.bytes = std::move(bytes)});
            }
        }
    };
}

behaviour silent(applies when, std::shared_ptr<fake_redis> master)
{
    return [when, master = or_new(std::move(master))](session& client)
    {
        visit known{*master, client};
        bool mute = false;
        while (const std::optional<command> words = client.read_command())
        {
            mute = mute || concerned(when, *words);
            if (!mute)
            {
                client.send({.bytes = known.answer_to(*words)});
            }
        }
    };
}

behaviour says(std::string bytes, applies when, std::shared_ptr<fake_redis> master)
{
    return answers_instead({.bytes = std::move(bytes)}, when, std::move(master));
}

behaviour speaks_http(applies when, std::shared_ptr<fake_redis> master)
{
    return answers_instead(
        {.bytes = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
                  "Content-Length: 12\r\n\r\nBad Request\n",
         .close = closing::after},
        when, std::move(master));
}

behaviour garbage(applies when, std::shared_ptr<fake_redis> master)
{
    using namespace std::string_literals;
    return says("\x00\xff\x13\x37 what is this\r\n\r\n\x80\x81\x00"s, when, std::move(master));
}

behaviour huge_bulk_length(applies when, std::shared_ptr<fake_redis> master)
{
    return says("$4294967296\r\n" + std::string(4096, 'x'), when, std::move(master));
}

behaviour endless_line(std::size_t bytes, applies when, std::shared_ptr<fake_redis> master)
{
    constexpr std::size_t piece = 64 * 1024;
    return answers_instead(
        {.bytes = "+" + std::string(piece - 1, 'x'), .times = (bytes + piece - 1) / piece}, when,
        std::move(master));
}

behaviour answers_twice(applies when, std::shared_ptr<fake_redis> master)
{
    // In a single write: the client couldn't recognize a second answer that arrives after its next command was sent.
    return altered(
        [](session&, const command&, std::string bytes) { return answer{.bytes = bytes + bytes}; }, when,
        std::move(master));
}

behaviour closes_in_the_middle(applies when, std::shared_ptr<fake_redis> master)
{
    return answers_so({.close = closing::in_the_middle}, when, std::move(master));
}

behaviour closes_instead(applies when, std::shared_ptr<fake_redis> master)
{
    return answers_so({.close = closing::before}, when, std::move(master));
}

behaviour closes_after(applies when, std::shared_ptr<fake_redis> master)
{
    return answers_so({.close = closing::after}, when, std::move(master));
}

behaviour late(std::chrono::milliseconds by, applies when, std::shared_ptr<fake_redis> master)
{
    return answers_so({.delay = by}, when, std::move(master));
}

behaviour in_single_bytes(applies when, std::shared_ptr<fake_redis> master)
{
    return answers_so({.single_bytes = true}, when, std::move(master));
}

} // namespace redlock::test
