#include "reader/ui/server/http_server.hpp"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

namespace arctrace::reader {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Error = boost::system::error_code;

constexpr size_t kConnectionsMax = 32;
constexpr uint32_t kHeaderMax = 8 << 10;
constexpr std::chrono::seconds kRequestTime{30};
constexpr std::chrono::milliseconds kPollTime{100};
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// Returns 128 bits that nobody guesses.
std::optional<std::string> made_token() {
  std::array<char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return std::nullopt;
  }
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_code = text[i] == '%' && i + 2 < text.size() &&
                         hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0;
    if (is_code) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::map<std::string, std::string> parsed_query(std::string_view text) {
  std::map<std::string, std::string> query;
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    const size_t equals = pair.find('=');
    query[decoded(pair.substr(0, equals))] =
        equals == std::string_view::npos ? "" : decoded(pair.substr(equals + 1));
  }
  return query;
}

// Compares in the same time wherever the tokens differ.
bool same_token(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  int differs = 0;
  for (size_t i = 0; i < a.size(); ++i) differs |= a[i] ^ b[i];
  return differs == 0;
}

struct Site {
  std::string token;
  uint16_t port = 0;
  HttpServer::Handler handler;
  size_t connections = 0;

  HttpAnswer answer(const http::request<http::empty_body>& request) const {
    const auto refuse = [](unsigned status, const std::string& why) {
      return HttpAnswer{status, "text/plain", absl::StrCat(why, "\n")};
    };
    const auto host_field = request[http::field::host];
    const std::string_view host(host_field.data(), host_field.size());
    if (host != absl::StrCat("127.0.0.1:", port) &&
        host != absl::StrCat("localhost:", port)) {
      return refuse(403, absl::StrCat("this page is for 127.0.0.1:", port,
                                      " only; a tunnel needs the same port"));
    }
    std::string_view target(request.target().data(), request.target().size());
    const std::string_view path = target.substr(0, target.find('?'));
    const std::string_view query =
        path.size() < target.size() ? target.substr(path.size() + 1) : "";
    const size_t slash = path.find('/', 1);
    if (!path.starts_with('/') || slash == std::string_view::npos ||
        !same_token(path.substr(1, slash - 1), token)) {
      return refuse(403, "the address lacks the token that arctrace view printed");
    }
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      return refuse(405, "only GET");
    }
    return handler({std::string(path.substr(slash)), parsed_query(query)});
  }
};

// One connection, from accept to close.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Site& site) : stream_(std::move(socket)), site_(site) {
    ++site_.connections;
  }
  ~Connection() { --site_.connections; }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void read() {
    parser_.emplace();
    parser_->header_limit(kHeaderMax);
    parser_->body_limit(0);
    stream_.expires_after(kRequestTime);
    http::async_read(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](Error error, size_t /*bytes*/) {
          if (!error) return self->answer();
          if (const unsigned status = status_of(error); status != 0) {
            self->write({status, "text/plain", "not a valid request\n"}, false, false);
          }
        });
  }

 private:
  // Returns the status of the answer to a bad request; 0 if the connection itself failed.
  static unsigned status_of(const Error& error) {
    if (error == http::error::header_limit) return 431;
    if (error == http::error::body_limit) return 413;
    const bool is_over =
        error == http::error::end_of_stream || error == http::error::partial_message;
    const Error parsing = http::make_error_code(http::error::bad_method);
    return !is_over && error.category() == parsing.category() ? 400 : 0;
  }

  void answer() {
    const http::request<http::empty_body>& request = parser_->get();
    write(site_.answer(request), request.keep_alive(),
          request.method() == http::verb::head);
  }

  void write(HttpAnswer answer, bool keep_alive, bool is_head) {
    response_ = {};
    response_.version(11);
    response_.result(answer.status);
    response_.keep_alive(keep_alive);
    response_.set(http::field::content_type, answer.type);
    response_.set(http::field::cache_control, "no-store");
    response_.set("Content-Security-Policy", {kPolicy.data(), kPolicy.size()});
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("Referrer-Policy", "no-referrer");
    response_.set("Cross-Origin-Resource-Policy", "same-origin");
    response_.content_length(answer.body.size());
    if (!is_head) response_.body() = std::move(answer.body);
    stream_.expires_after(kRequestTime);
    http::async_write(
        stream_, response_, [self = shared_from_this()](Error error, size_t /*bytes*/) {
          if (error) return;
          if (self->response_.keep_alive()) return self->read();
          self->stream_.socket().shutdown(tcp::socket::shutdown_send, error);
        });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{kHeaderMax + 4096};
  std::optional<http::request_parser<http::empty_body>> parser_;
  http::response<http::string_body> response_;
  Site& site_;
};

}  // namespace

struct HttpServer::Impl {
  Site site;  // outlives the connections, which `context` has
  asio::io_context context{1};
  tcp::acceptor acceptor{context};
  asio::steady_timer timer{context};

  void accept() {
    acceptor.async_accept([this](Error error, tcp::socket socket) {
      if (!error && site.connections < kConnectionsMax) {
        std::make_shared<Connection>(std::move(socket), site)->read();
      }
      if (acceptor.is_open()) accept();
    });
  }

  void poll(const std::function<bool()>& stops) {
    timer.expires_after(kPollTime);
    timer.async_wait([this, &stops](Error /*error*/) {
      if (stops()) return context.stop();
      poll(stops);
    });
  }
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::listen(uint16_t port,
                                                               Handler handler) {
  auto impl = std::make_unique<Impl>();
  const std::optional<std::string> token = made_token();
  if (!token.has_value()) return absl::InternalError("the system gives no random bytes");
  impl->site.token = *token;
  impl->site.handler = std::move(handler);
  const tcp::endpoint endpoint(asio::ip::address_v4::loopback(), port);
  Error error;
  impl->acceptor.open(endpoint.protocol(), error);
  // This option permits a port that this command served a moment ago.
  if (!error) impl->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) impl->acceptor.bind(endpoint, error);
  if (!error) impl->acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return absl::UnavailableError(absl::StrCat("cannot listen on 127.0.0.1:", port, ": ",
                                               error.message(),
                                               "; --port 0 takes any that is free"));
  }
  impl->site.port = impl->acceptor.local_endpoint().port();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

std::string HttpServer::url() const {
  return absl::StrCat("http://127.0.0.1:", impl_->site.port, "/", impl_->site.token, "/");
}

void HttpServer::run(const std::function<bool()>& stops) {
  impl_->accept();
  impl_->poll(stops);
  impl_->context.run();
}

}  // namespace arctrace::reader
