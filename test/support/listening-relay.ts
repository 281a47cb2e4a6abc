import { once } from 'node:events'
import { connect, createServer } from 'node:net'

export interface ListeningRelay extends AsyncDisposable {
  readonly port: number
  /** Everything that it carried to its clients. */
  heard(): Buffer
}

/** Stands between a client and a port, and keeps what the client gets. */
export async function listenBetween(port: number): Promise<ListeningRelay> {
  const pieces: Buffer[] = []
  const server = createServer((client) => {
    const other = connect(port, '127.0.0.1')
    for (const [one, two] of [
      [client, other],
      [other, client],
    ] as const) {
      one.on('error', () => two.destroy())
      one.on('close', () => two.destroySoon())
      one.pipe(two)
    }
    other.on('data', (piece) => pieces.push(piece))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as { port: number }).port,
    heard: () => Buffer.concat(pieces),
    async [Symbol.asyncDispose]() {
      server.close()
    },
  }
}

/** The forms in which a secret could stand in bytes: as it is, encoded, or as a hash that gives a login. */
export function formsOf(secret: string, hashes: readonly Buffer[] = []): readonly Buffer[] {
  const bytes = [Buffer.from(secret), ...hashes]
  const aligned = [0, 1, 2].map((at) =>
    Buffer.from(
      Buffer.from(`${'x'.repeat(at)}${secret}`)
        .toString('base64')
        .slice(4, -4),
    ),
  )
  const written = bytes.flatMap((one) => [
    one,
    Buffer.from(one.toString('hex')),
    Buffer.from(one.toString('base64')),
  ])
  return [...written, ...aligned, Buffer.from(encodeURIComponent(secret)), Buffer.from(secret, 'utf16le')]
}
