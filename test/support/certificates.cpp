// SPDX-License-Identifier: BSL-1.0
// Creates certificates for the tests, with OpenSSL.
#include "certificates.hpp"

#include <cstdio>
#include <stdexcept>
#include <utility>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>

namespace redlock::test
{

namespace
{

template <auto Free>
struct freed_by
{
    template <class T>
    void operator()(T* value) const
    {
        Free(value);
    }
};
using key_ptr = std::unique_ptr<EVP_PKEY, freed_by<EVP_PKEY_free>>;
using certificate_ptr = std::unique_ptr<X509, freed_by<X509_free>>;
using extension_ptr = std::unique_ptr<X509_EXTENSION, freed_by<X509_EXTENSION_free>>;
using file_ptr = std::unique_ptr<std::FILE, freed_by<std::fclose>>;

void expect(bool good, const std::string& what)
{
    if (!good)
    {
        throw std::runtime_error{"OpenSSL could not " + what};
    }
}

key_ptr new_key(bool rsa = false)
{
    key_ptr key{rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256")};
    expect(key != nullptr, "make a key");
    return key;
}

void add_extension(X509& to, X509& issuer, int which, const std::string& value)
{
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, &issuer, &to, nullptr, nullptr, 0);
    const extension_ptr extension{X509V3_EXT_conf_nid(nullptr, &context, which, value.c_str())};
    expect(
        extension && X509_add_ext(&to, extension.get(), -1) == 1, "write '" + value + "' into a certificate");
}

/// Creates a certificate that isn't signed.
certificate_ptr new_certificate(const std::string& name, EVP_PKEY& key, const certificate_options& says)
{
    certificate_ptr made{X509_new()};
    expect(made && X509_set_version(made.get(), X509_VERSION_3) == 1, "make a certificate");
    std::uint64_t number = 0;
    expect(
        RAND_bytes(reinterpret_cast<unsigned char*>(&number), sizeof(number)) == 1 &&
            ASN1_INTEGER_set_uint64(X509_get_serialNumber(made.get()), number >> 1U) == 1,
        "number a certificate");
    const auto seconds = [](std::chrono::hours value)
    { return static_cast<long>(std::chrono::seconds{value}.count()); };
    X509_gmtime_adj(X509_getm_notBefore(made.get()), seconds(says.begins));
    X509_gmtime_adj(X509_getm_notAfter(made.get()), seconds(says.ends));
    const std::string& common_name = says.common_name.empty() ? name : says.common_name;
    const auto* bytes = reinterpret_cast<const unsigned char*>(common_name.c_str());
    expect(
        X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC, bytes, -1, -1, 0) ==
                1 &&
            X509_set_pubkey(made.get(), &key) == 1,
        "name a certificate");
    return made;
}

void sign(X509& certificate, X509& issuer, EVP_PKEY& with)
{
    expect(
        X509_set_issuer_name(&certificate, X509_get_subject_name(&issuer)) == 1 &&
            X509_sign(&certificate, &with, EVP_sha256()) > 0,
        "sign a certificate");
}

/// Writes a certificate, followed by that of its issuer if there is one.
certificate_files write(
    const std::string& directory, const std::string& name, X509& certificate, EVP_PKEY& key,
    X509* issuer = nullptr)
{
    certificate_files files{directory + "/" + name + ".pem", directory + "/" + name + "-key.pem"};
    const file_ptr certificate_file{std::fopen(files.certificate.c_str(), "w")};
    const file_ptr key_file{std::fopen(files.key.c_str(), "w")};
    expect(
        certificate_file && key_file && PEM_write_X509(certificate_file.get(), &certificate) == 1 &&
            (issuer == nullptr || PEM_write_X509(certificate_file.get(), issuer) == 1) &&
            PEM_write_PrivateKey(key_file.get(), &key, nullptr, nullptr, 0, nullptr, nullptr) == 1,
        "write " + files.certificate);
    return files;
}

} // namespace

void encrypt_key(const std::string& file, std::string password)
{
    const file_ptr in{std::fopen(file.c_str(), "r")};
    const key_ptr key{in ? PEM_read_PrivateKey(in.get(), nullptr, nullptr, nullptr) : nullptr};
    const file_ptr out{std::fopen(file.c_str(), "w")};
    expect(
        key && out &&
            PEM_write_PrivateKey(
                out.get(), key.get(), EVP_aes_256_cbc(), reinterpret_cast<unsigned char*>(password.data()),
                static_cast<int>(password.size()), nullptr, nullptr) == 1,
        "encrypt " + file);
}

struct certificate_authority::parts
{
    key_ptr key;
    certificate_ptr certificate;
};

certificate_authority::certificate_authority(
    std::string directory, const std::string& name, const parts* signs)
    : directory_{std::move(directory)}, is_intermediate_{signs != nullptr}, parts_{std::make_unique<parts>()}
{
    parts_->key = new_key();
    parts_->certificate = new_certificate(name, *parts_->key, {});
    X509& certificate = *parts_->certificate;
    const parts& issuer = is_intermediate_ ? *signs : *parts_;
    sign(certificate, *issuer.certificate, *issuer.key);
    add_extension(certificate, *issuer.certificate, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(certificate, *issuer.certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
    sign(certificate, *issuer.certificate, *issuer.key);
    own_ = write(directory_, name, certificate, *parts_->key);
}

certificate_authority::certificate_authority(std::string directory, const std::string& name)
    : certificate_authority{std::move(directory), name, static_cast<const parts*>(nullptr)}
{
}

certificate_authority::certificate_authority(
    std::string directory, const std::string& name, const certificate_authority& signs)
    : certificate_authority{std::move(directory), name, signs.parts_.get()}
{
}

certificate_authority::~certificate_authority() = default;

certificate_files certificate_authority::issue(const std::string& name, const certificate_options& says)
{
    const key_ptr key = new_key(says.rsa);
    const certificate_ptr made = new_certificate(name, *key, says);
    if (!says.made_out_to.empty())
    {
        add_extension(*made, *parts_->certificate, NID_subject_alt_name, says.made_out_to);
    }
    sign(*made, *parts_->certificate, *parts_->key);
    return write(directory_, name, *made, *key, is_intermediate_ ? parts_->certificate.get() : nullptr);
}

certificate_files certificate_authority::self_signed(const std::string& name, const certificate_options& says)
{
    const key_ptr key = new_key();
    const certificate_ptr made = new_certificate(name, *key, says);
    add_extension(*made, *made, NID_subject_alt_name, says.made_out_to);
    sign(*made, *made, *key);
    return write(directory_, name, *made, *key);
}

} // namespace redlock::test
