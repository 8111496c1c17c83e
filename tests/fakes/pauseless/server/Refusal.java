package server;

/** An answer that is not 200. */
final class Refusal extends RuntimeException {
  final int _status;

  Refusal(int status, String why) {
    super(why);
    _status = status;
  }
}
