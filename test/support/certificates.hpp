// SPDX-License-Identifier: BSL-1.0
// Certificates created by the tests: correct ones, and each kind of incorrect one.
#pragma once

#include <chrono>
#include <memory>
#include <string>

namespace redlock::test
{

/// The contents of a certificate.
struct certificate_options
{
    /// Its subject alternative names in OpenSSL's notation: "IP:127.0.0.1", "DNS:master.example". Empty for none.
    std::string made_out_to = "IP:127.0.0.1,IP:::1,DNS:localhost";
    /// Start and end of its validity, counted from now.
    std::chrono::hours begins{-1};
    std::chrono::hours ends{24};
    /// Its common name; empty for the name of its files.
    std::string common_name{};
    /// Uses an RSA key instead of one of an elliptic curve.
    bool rsa = false;
};

/// A certificate and its key, as files in PEM format.
struct certificate_files
{
    std::string certificate;
    std::string key;
};

/// Encrypts the key in a file.
void encrypt_key(const std::string& file, std::string password);

/// A certificate authority. Its files are written to a directory that must outlive it.
class certificate_authority
{
  public:
    /// `name` is part of the files' names. Throws if OpenSSL fails.
    certificate_authority(std::string directory, const std::string& name);
    /// An intermediate authority, which another one has signed. The files that it issues contain its own certificate as
    /// well, after the one that was asked for.
    certificate_authority(std::string directory, const std::string& name, const certificate_authority& signs);
    certificate_authority(const certificate_authority&) = delete;
    certificate_authority& operator=(const certificate_authority&) = delete;
    ~certificate_authority();

    /// The authority's certificate: the file that a peer needs in order to trust it.
    const std::string& file() const { return own_.certificate; }
    /// Signs a new certificate.
    certificate_files issue(const std::string& name, const certificate_options& says = {});
    /// Creates a self-signed certificate.
    certificate_files self_signed(const std::string& name, const certificate_options& says = {});

  private:
    struct parts;

    certificate_authority(std::string directory, const std::string& name, const parts* signs);

    std::string directory_;
    bool is_intermediate_;
    certificate_files own_;
    std::unique_ptr<parts> parts_;
};

} // namespace redlock::test
