// SPDX-License-Identifier: BSL-1.0
// The handshakes of a TLS server with several certificates.
#include "tls_server.hpp"

#include <array>
#include <csignal>
#include <stdexcept>
#include <utility>

#include <openssl/ssl.h>
#include <sys/socket.h>

namespace redlock::test
{
namespace
{

struct context_deleter
{
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
struct connection_deleter
{
    void operator()(SSL* connection) const { SSL_free(connection); }
};
using context_ptr = std::unique_ptr<SSL_CTX, context_deleter>;

context_ptr server_context(const certificate_files& files)
{
    context_ptr made{SSL_CTX_new(TLS_server_method())};
    if (!made || SSL_CTX_use_certificate_chain_file(made.get(), files.certificate.c_str()) != 1 ||
        SSL_CTX_use_PrivateKey_file(made.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    {
        throw std::runtime_error{"OpenSSL could not use " + files.certificate};
    }
    return made;
}

} // namespace

struct tls_server::contexts
{
    tls_server& owner;
    context_ptr initial{SSL_CTX_new(TLS_server_method())}; // Without a certificate.
    std::map<std::string, context_ptr> by_name{};

    static int choose(SSL* connection, int* alert, void* self)
    {
        auto& all = *static_cast<contexts*>(self);
        const char* const name = SSL_get_servername(connection, TLSEXT_NAMETYPE_host_name);
        const std::string sent = name != nullptr ? name : "";
        {
            const std::lock_guard lock{all.owner.mutex_};
            all.owner.names_.push_back(sent);
        }
        const auto found = all.by_name.find(sent);
        if (found == all.by_name.end())
        {
            *alert = SSL_AD_UNRECOGNIZED_NAME;
            return SSL_TLSEXT_ERR_ALERT_FATAL;
        }
        SSL_set_SSL_CTX(connection, found->second.get());
        return SSL_TLSEXT_ERR_OK;
    }
};

tls_server::tls_server(const std::map<std::string, certificate_files>& certificates)
    : listener_{listen_on_loopback()}, contexts_{new contexts{*this}}
{
    for (const auto& [name, files] : certificates)
    {
        contexts_->by_name.emplace(name, server_context(files));
    }
    SSL_CTX_set_tlsext_servername_callback(contexts_->initial.get(), contexts::choose);
    SSL_CTX_set_tlsext_servername_arg(contexts_->initial.get(), contexts_.get());
    thread_ = std::thread{[this] { serve(); }};
}

tls_server::~tls_server()
{
    {
        const std::lock_guard lock{mutex_};
        stopping_ = true;
        ::shutdown(client_, SHUT_RDWR);
    }
    ::shutdown(listener_.socket.get(), SHUT_RDWR); // Ends accept().
    thread_.join();
}

std::vector<std::string> tls_server::names() const
{
    const std::lock_guard lock{mutex_};
    return names_;
}

void tls_server::serve()
{
    // OpenSSL writes to connections that the client may have closed.
    sigset_t broken_pipe;
    ::sigemptyset(&broken_pipe);
    ::sigaddset(&broken_pipe, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
    while (true)
    {
        const unique_fd client{::accept4(listener_.socket.get(), nullptr, nullptr, SOCK_CLOEXEC)};
        {
            const std::lock_guard lock{mutex_};
            if (stopping_)
            {
                return;
            }
            client_ = client.get();
        }
        handshake(client);
        const std::lock_guard lock{mutex_};
        client_ = -1;
    }
}

void tls_server::handshake(const unique_fd& client)
{
    const std::unique_ptr<SSL, connection_deleter> connection{SSL_new(contexts_->initial.get())};
    SSL_set_fd(connection.get(), client.get());
    const bool done = SSL_accept(connection.get()) == 1;
    std::array<char, 256> ignored{};
    while (done && SSL_read(connection.get(), ignored.data(), ignored.size()) > 0)
    {
    }
}

} // namespace redlock::test
