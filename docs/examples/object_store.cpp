// SPDX-License-Identifier: BSL-1.0
// A store for one object over HTTP, with the conditional writes of S3: example_object_store <content>
//
// It prints "listening on <port>", and runs until it is ended. A PUT with If-Match is refused with 412 unless the ETag
// is that of the object. Like that of S3, the ETag depends on the content alone; here it is the content.
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <exception>
#include <iostream>
#include <string>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using request = http::request<http::string_body>;
using response = http::response<http::string_body>;

response answer(const request& question, std::string& content)
{
    const auto etag = [&content] { return '"' + content + '"'; };
    response reply{http::status::ok, question.version()};
    const auto condition = question.find(http::field::if_match);
    if (question.method() == http::verb::get)
    {
        reply.body() = content;
    }
    else if (question.method() != http::verb::put)
    {
        reply.result(http::status::method_not_allowed);
    }
    else if (condition != question.end() && condition->value() != etag())
    {
        reply.result(http::status::precondition_failed);
    }
    else
    {
        content = question.body();
    }
    reply.set(http::field::etag, etag());
    reply.prepare_payload();
    return reply;
}

/// Answers one request. A client that breaks off is none of the others' concern.
void serve(beast::tcp_stream stream, std::string& content)
{
    try
    {
        beast::flat_buffer buffer;
        request question;
        http::read(stream, buffer, question);
        http::write(stream, answer(question, content));
    }
    catch (const beast::system_error& failure)
    {
        std::cerr << "object_store: " << failure.what() << '\n';
    }
}

int main(int argc, char** argv)
{
    if (argc != 2)
    {
        std::cerr << "usage: " << argv[0] << " <content>\n";
        return 64;
    }
    try
    {
        std::string content = argv[1];
        asio::io_context io;
        tcp::acceptor acceptor{io, {asio::ip::address_v4::loopback(), 0}};
        std::cout << "listening on " << acceptor.local_endpoint().port() << std::endl;
        // One request at a time: the comparison and the write are one step.
        while (true)
        {
            serve(beast::tcp_stream{acceptor.accept()}, content);
        }
    }
    catch (const std::exception& failure)
    {
        std::cerr << argv[0] << ": " << failure.what() << '\n';
        return 1;
    }
}
