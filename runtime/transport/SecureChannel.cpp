// SPDX-License-Identifier: Apache-2.0
// The only file that knows TLS. There are no certificates: who does not hold the key of the pair cannot end a
// handshake, on either side. Nothing is resumed and nothing is sent before a handshake has ended, so that a recorded
// one proves nothing.
#include "runtime/transport/SecureChannel.h"

#include "runtime/support/Secret.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace dg {

/// What one read from the socket may bring: two records. OpenSSL moves what is left to the front after each.
static constexpr size_t readAhead = 36 << 10;
/// What keys are good for: OpenSSL wants both sides to say so.
static constexpr unsigned char purpose[] = {'d', 'g'};

namespace {

/// OpenSSL writes with write(2), which ends the process when the peer is gone. Its own function stays for the kernel's
/// TLS, whose control records need more than send(2).
int sendQuietly(BIO *bio, const char *bytes, int count) {
  int descriptor = int(BIO_get_fd(bio, nullptr));
  BIO_clear_retry_flags(bio);
  ssize_t sent;
  if (BIO_get_ktls_send(bio)) {
    sigset_t pipes, before;
    sigemptyset(&pipes);
    sigaddset(&pipes, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipes, &before);
    sent = BIO_meth_get_write(BIO_s_socket())(bio, bytes, count);
    int error = errno;
    timespec now = {};
    if (sent < 0 && error == EPIPE)
      sigtimedwait(&pipes, nullptr, &now);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    errno = error;
    return int(sent);
  }
  sent = send(descriptor, bytes, size_t(count), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN))
    BIO_set_retry_write(bio);
  return int(sent);
}

/// OpenSSL's socket with the function above.
BIO_METHOD *socketMethod() {
  static BIO_METHOD *const method = [] {
    const BIO_METHOD *plain = BIO_s_socket();
    BIO_METHOD *made = BIO_meth_new(BIO_TYPE_SOCKET, "socket");
    BIO_meth_set_write(made, sendQuietly);
    BIO_meth_set_read(made, BIO_meth_get_read(plain));
    BIO_meth_set_puts(made, BIO_meth_get_puts(plain));
    BIO_meth_set_ctrl(made, BIO_meth_get_ctrl(plain));
    BIO_meth_set_create(made, BIO_meth_get_create(plain));
    BIO_meth_set_destroy(made, BIO_meth_get_destroy(plain));
    return made;
  }();
  return method;
}

/// TLS takes a pre-shared key as a session that both sides have.
SSL_SESSION *sessionWith(SSL *connection, const PairKey &key) {
  const unsigned char aes128[] = {0x13, 0x01}; // TLS_AES_128_GCM_SHA256
  SSL_SESSION *session = SSL_SESSION_new();
  const SSL_CIPHER *cipher = SSL_CIPHER_find(connection, aes128);
  if (session && cipher && SSL_SESSION_set1_master_key(session, key.data(), key.size()) == 1 &&
      SSL_SESSION_set1_id_context(session, purpose, sizeof purpose) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

SecureChannel &channelOf(SSL *connection) { return *static_cast<SecureChannel *>(SSL_get_app_data(connection)); }

} // namespace

struct SecureCallbacks {
  static int offer(SSL *connection, const EVP_MD *, const unsigned char **id, size_t *idBytes, SSL_SESSION **session) {
    SecureChannel &channel = channelOf(connection);
    *session = sessionWith(connection, channel.key);
    *id = reinterpret_cast<const unsigned char *>(&channel.names);
    *idBytes = sizeof channel.names;
    return *session != nullptr;
  }

  static int find(SSL *connection, const unsigned char *id, size_t idBytes, SSL_SESSION **session) {
    SecureChannel &channel = channelOf(connection);
    *session = nullptr;
    if (idBytes != sizeof channel.names)
      return 1; // not refused here: the handshake ends because there is no key
    std::memcpy(&channel.names, id, sizeof channel.names);
    if (const PairKey *key = channel.context.findKey(channel.names))
      *session = sessionWith(connection, *key);
    return 1;
  }
};

Result<std::unique_ptr<SecureContext>> SecureContext::make(FindKey findKey, uint64_t keyLife) {
  std::unique_ptr<SecureContext> made(new SecureContext);
  made->findKey = std::move(findKey);
  made->keyLife = keyLife;
  SSL_CTX *context = made->context = SSL_CTX_new(TLS_method());
  if (!context || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") != 1 || SSL_CTX_set_num_tickets(context, 0) != 1)
    return Status::error(ErrorKind::runFailed,
                         "OpenSSL cannot do TLS 1.3 with AES-128-GCM here: is it forbidden in openssl.cnf?");
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_ENABLE_KTLS);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_session_id_context(context, purpose, sizeof purpose);
  // A server that answers with a certificate instead of the key is refused: no certificate is trusted.
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, readAhead);
  SSL_CTX_set_psk_use_session_callback(context, SecureCallbacks::offer);
  SSL_CTX_set_psk_find_session_callback(context, SecureCallbacks::find);
  return made;
}

SecureContext::~SecureContext() { SSL_CTX_free(context); }

SecureChannel::SecureChannel(SecureContext &context, int descriptor) : context(context), socket(descriptor) {
  connection = SSL_new(context.context);
  BIO *bio = BIO_new(socketMethod());
  if (!connection || !bio) {
    BIO_free(bio);
    why = "OpenSSL has no memory";
    return;
  }
  BIO_set_fd(bio, descriptor, BIO_NOCLOSE);
  SSL_set_bio(connection, bio, bio);
  SSL_set_app_data(connection, this);
  int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

SecureChannel::~SecureChannel() {
  forget(key.data(), key.size());
  SSL_free(connection);
  close(socket);
}

std::unique_ptr<SecureChannel> SecureChannel::asClient(SecureContext &context, int descriptor, PairName pair,
                                                       const PairKey &key) {
  std::unique_ptr<SecureChannel> made(new SecureChannel(context, descriptor));
  made->names = pair;
  made->key = key;
  if (made->connection)
    SSL_set_connect_state(made->connection);
  return made;
}

std::unique_ptr<SecureChannel> SecureChannel::asServer(SecureContext &context, int descriptor) {
  std::unique_ptr<SecureChannel> made(new SecureChannel(context, descriptor));
  if (made->connection)
    SSL_set_accept_state(made->connection);
  return made;
}

void SecureChannel::judge(int code) {
  int error = errno, kind = SSL_get_error(connection, code);
  isWriteBlocked = kind == SSL_ERROR_WANT_WRITE;
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
    return;
  unsigned long first = ERR_peek_error();
  int reason = ERR_GET_LIB(first) == ERR_LIB_SSL ? ERR_GET_REASON(first) : 0;
  const char *text = ERR_reason_error_string(first);
  if (kind == SSL_ERROR_ZERO_RETURN)
    why = "it has closed the connection";
  else if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
    why = "the connection was cut without a farewell: the peer is gone, or someone on the way cut it";
  else if (kind == SSL_ERROR_SYSCALL)
    why = error ? std::strerror(error) : "the connection was cut";
  else if (!isDone)
    why = fmt::format("no proof of the key that the two share ({})", text ? text : "TLS failed");
  else if (reason == SSL_R_TLSV1_ALERT_DECRYPT_ERROR || reason == SSL_R_SSLV3_ALERT_BAD_RECORD_MAC)
    why = "it found that bytes from here were changed on the way";
  else
    why = fmt::format("the bytes that came are not those that it sent, they were changed on the way ({})",
                      text ? text : "TLS failed");
  ERR_clear_error();
}

SecureChannel::State SecureChannel::shakeHands() {
  if (isDone)
    return State::done;
  if (why.empty()) {
    ERR_clear_error();
    int code = SSL_do_handshake(connection);
    if (code != 1)
      judge(code);
    else if (SSL_session_reused(connection) != 1)
      why = "the handshake ended without the key that the two share";
    else
      isDone = true;
    if (isDone)
      forget(key.data(), key.size());
  }
  return !why.empty() ? State::failed : isDone ? State::done : State::going;
}

size_t SecureChannel::write(const void *bytes, size_t count) {
  if (!why.empty())
    return 0;
  size_t written = 0;
  ERR_clear_error();
  if (int code = SSL_write_ex(connection, bytes, count, &written); code != 1) {
    judge(code);
    return 0;
  }
  isWriteBlocked = false;
  // A key that the kernel holds stays: not every kernel can renew it.
  if (++numRecords == context.keyLife && !isInKernel()) {
    SSL_key_update(connection, SSL_KEY_UPDATE_NOT_REQUESTED);
    numRecords = 0;
  }
  return written;
}

size_t SecureChannel::read(void *bytes, size_t count) {
  if (!why.empty())
    return 0;
  size_t got = 0;
  ERR_clear_error();
  bool wasBlocked = isWriteBlocked;
  if (int code = SSL_read_ex(connection, bytes, count, &got); code != 1) {
    judge(code);
    got = 0;
  }
  isWriteBlocked = isWriteBlocked || wasBlocked;
  return got;
}

bool SecureChannel::hasPending() const { return why.empty() && SSL_has_pending(connection) == 1; }

bool SecureChannel::isInKernel() const { return BIO_get_ktls_send(SSL_get_wbio(connection)); }

void SecureChannel::sayGoodbye() {
  if (isDone && why.empty()) {
    ERR_clear_error();
    SSL_shutdown(connection);
    why = "this rank has closed the connection";
  }
}

} // namespace dg
