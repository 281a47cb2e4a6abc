import { constants, type Http2Stream, type OutgoingHttpHeaders } from 'node:http2'

/**
 * Node ends a stream that the other side reset without an error as it ends a complete one (RFC 9113 §8.1 permits such a reset
 * only behind END_STREAM). This makes it close without an end instead. Call it before the end of the stream can have come.
 */
export function endOnlyWhole(stream: Http2Stream): void {
  const push = stream.push.bind(stream)
  let isWhole = false
  stream.push = (chunk: unknown, encoding?: BufferEncoding) => {
    if (chunk === null && !isWhole) {
      // The end of what was sent comes before the stream is closed.
      if (stream.closed) {
        process.nextTick(() => stream.destroy())
        return false
      }
      isWhole = true
    }
    return push(chunk, encoding)
  }
}

/** Ends it with these, at the event that wants them. Trailers that Node does not write break it: without them it is not whole. */
export function endWithTrailers(stream: Http2Stream, trailers: OutgoingHttpHeaders): void {
  try {
    stream.sendTrailers(trailers)
  } catch {
    stream.close(constants.NGHTTP2_INTERNAL_ERROR)
  }
}
