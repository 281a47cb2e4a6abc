import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { signingKey } from './canonical.ts'
import { createChunkSigner } from './chunks.ts'

// "Transferring Payload in Multiple Chunks" and "Including Trailing Headers" in the S3 API Reference.
const scope = { time: '20130524T000000Z', region: 'us-east-1', service: 's3' }
const key = signingKey('wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY', scope)
const NONE = '0'.repeat(64)
const chunk = (data: string) => `${data.length.toString(16)};chunk-signature=${NONE}\r\n${data}\r\n`
const BODY = `${chunk('a'.repeat(65_536))}${chunk('a'.repeat(1024))}`
const SEED = '4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9'
const TRAILER_SEED = '106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e'

async function pass(body: string, { pieces = body.length, seed = SEED, hasTrailer = false } = {}) {
  const data = Buffer.from(body)
  const parts = Array.from({ length: Math.ceil(data.length / pieces) }, (_, index) =>
    data.subarray(index * pieces, (index + 1) * pieces),
  )
  const made = Readable.from(parts).compose(createChunkSigner({ key, seed, hasTrailer }))
  return String(await buffer(made))
}
const signaturesIn = (text: string) => [...text.matchAll(/-signature[=:](\w+)/g)].map(([, one]) => one)

describe('the signer of chunks', () => {
  it.each([1_000_000, 4096, 333, 7])(
    'signs the documented example, in pieces of %i bytes',
    async (pieces) => {
      const body = `${BODY}${chunk('')}`
      const made = await pass(body, { pieces })
      expect(signaturesIn(made)).toEqual([
        'ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648',
        '0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497',
        'b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9',
      ])
      // Everything else stays, so that the length does.
      expect(made.replaceAll(/=\w{64}/g, `=${NONE}`)).toBe(body)
    },
  )

  it.each([1_000_000, 5])('signs the documented trailer, in pieces of %i bytes', async (pieces) => {
    const end = `0;chunk-signature=${NONE}\r\nx-amz-checksum-crc32c:sOO8/Q==\r\nx-amz-trailer-signature:${NONE}\r\n\r\n`
    const made = await pass(`${BODY}${end}`, { pieces, seed: TRAILER_SEED, hasTrailer: true })
    expect(signaturesIn(made)).toEqual([
      'b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2',
      '1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7',
      '2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992',
      'd81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435',
    ])
  })

  it.each([
    ['nothing', ''],
    ['half a chunk', chunk('abc').slice(0, 80)],
    ['no last chunk', chunk('abc')],
    ['no end of the last chunk', `0;chunk-signature=${NONE}\r\n`],
    ['a chunk that is longer than it says', chunk('abc').replace('abc', 'abcd')],
    ['a chunk without a signature', '3\r\nabc\r\n0\r\n\r\n'],
    ['a size that is no number', chunk('abc').replace('3;', '-3;')],
    ['a size beyond all bounds', chunk('abc').replace('3;', 'ffffffff;')],
    ['a size that is too large', chunk('abc').replace('3;', '1000001;')],
    ['a line without an end', `3;${'x'.repeat(5000)}`],
    ['something behind the end', `${chunk('')}GET / HTTP/1.1\r\n\r\n`],
    ['a trailer that nobody announced', `0;chunk-signature=${NONE}\r\nx-amz-meta: x\r\n\r\n`],
  ])('breaks at %s', async (_, body) => {
    await expect(pass(body)).rejects.toThrow()
    await expect(pass(body, { pieces: 3 })).rejects.toThrow()
  })

  it('breaks at a trailer that is none', async () => {
    const head = `0;chunk-signature=${NONE}\r\n`
    for (const trailer of ['no colon\r\n', 'x\r\n\r\n', `${'x-a:b\r\n'.repeat(50)}`, 'x-a: b\r\n\r\n'])
      await expect(pass(`${head}${trailer}`, { hasTrailer: true })).rejects.toThrow()
  })

  it('holds no more than one chunk', async () => {
    const signer = createChunkSigner({ key, seed: SEED, hasTrailer: false })
    let out = 0
    signer.on('data', (data: Buffer) => {
      out += data.length
    })
    const one = chunk('a'.repeat(65_536))
    for (let index = 0; index < 200; index += 1) signer.write(one)
    await new Promise((resolve) => signer.write(one, resolve))
    expect(out).toBe(201 * one.length)
    signer.destroy()
  })
})
