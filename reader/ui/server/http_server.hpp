// A server of HTTP for one page on this machine.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace arctrace::reader {

struct HttpRequest {
  std::string path;                          // without the token: "/", "/api/call"
  std::map<std::string, std::string> query;  // decoded
};

struct HttpAnswer {
  unsigned status = 200;
  std::string type = "application/json";
  std::string body;
};

// Listens on the loopback interface only. Answers GET of paths below "/TOKEN/", if the
// header Host names this machine and port, so that no page of another server reads it
// through a browser. Requests are bounded in size and time, connections in number. One
// thread does it all: answers are made one after another.
class HttpServer {
 public:
  using Handler = std::function<HttpAnswer(const HttpRequest&)>;

  // `port`: 0 takes any that is free. Error: the port is in use.
  static absl::StatusOr<std::unique_ptr<HttpServer>> listen(uint16_t port,
                                                            Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "http://127.0.0.1:12345/TOKEN/"
  std::string url() const;

  // Serves until `stops`, which is called some times a second, returns true.
  void run(const std::function<bool()>& stops);

 private:
  struct Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace arctrace::reader
