// SPDX-License-Identifier: BSL-1.0
// Certificates made by the tests: right ones, and wrong ones of each kind.
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace redlock::test
{

/// What a certificate says.
struct certificate_options
{
    /// Whom it is made out to, as OpenSSL writes alternative names: "IP:127.0.0.1", "DNS:master.example". Empty for
    /// none.
    std::string made_out_to = "IP:127.0.0.1,IP:::1,DNS:localhost";
    /// When it begins and ends, counted from now.
    std::chrono::hours begins{-1};
    std::chrono::hours ends{24};
    /// Its common name; empty for the name of its files.
    std::string common_name{};
    /// An RSA key, not one of an elliptic curve.
    bool rsa = false;
};

/// A certificate and its key, as files in PEM format.
struct certificate_files
{
    std::string certificate;
    std::string key;
};

/// An authority with a certificate of its own. Its files are written to a directory that must outlive it.
class certificate_authority
{
  public:
    /// `name` is part of the files' names. Throws if OpenSSL can't.
    certificate_authority(std::string directory, std::string name);
    certificate_authority(const certificate_authority&) = delete;
    certificate_authority& operator=(const certificate_authority&) = delete;
    ~certificate_authority();

    /// Its own certificate: what trusts it needs this file.
    const std::string& file() const { return own_.certificate; }
    /// Signs a new certificate.
    certificate_files issue(const std::string& name, const certificate_options& says = {});
    /// One that nobody has signed but itself.
    certificate_files self_signed(const std::string& name, const certificate_options& says = {});

  private:
    struct parts;

    std::string directory_;
    certificate_files own_;
    std::unique_ptr<parts> parts_;
};

} // namespace redlock::test
