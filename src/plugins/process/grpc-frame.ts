/** A message of gRPC in its frame (grpc/doc/PROTOCOL-HTTP2.md, Length-Prefixed-Message): a flag, four bytes of length, the message. */
export const FRAME_HEAD_BYTES = 5

/** Uncompressed. */
export function frameOf(message: Uint8Array): Buffer {
  const head = Buffer.alloc(FRAME_HEAD_BYTES)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

/** The message of exactly one frame. `undefined`: it is not whole, or more follows. */
export function messageIn(
  frame: Buffer,
): { readonly message: Buffer; readonly isCompressed: boolean } | undefined {
  if (frame.length < FRAME_HEAD_BYTES || frame.readUInt32BE(1) !== frame.length - FRAME_HEAD_BYTES)
    return undefined
  return { message: frame.subarray(FRAME_HEAD_BYTES), isCompressed: frame[0] !== 0 }
}
