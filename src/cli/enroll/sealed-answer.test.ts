import { createPublicKey } from 'node:crypto'
import { CompactEncrypt } from 'jose'
import { describe, expect, test } from 'vitest'
import { sealAnswer } from '../../keys/proofs.ts'
import { checkEncryptionJwk, type EncryptionJwk } from '../../keys/public-jwk.ts'
import { newAnswerKey } from './sealed-answer.ts'

const ANSWER = {
  token: 'ckr_ü',
  oidc: { client_id: 'agent_1', client_secret: 'cks_1' },
  scopes: ['demo'],
  agent_id: 'ag_1',
  signing_key_id: '1',
  signing_email: 'a@b',
}

async function sealedTo(publicJwk: object, answer: object = ANSWER): Promise<string> {
  return sealAnswer(answer, checkEncryptionJwk({ ...publicJwk }) as EncryptionJwk)
}

test('opens what the server sealed to the key', async () => {
  const key = await newAnswerKey()
  expect(await key.open(await sealedTo(key.publicJwk))).toEqual(ANSWER)
})

test('opens an answer that names its parties', async () => {
  const key = await newAnswerKey()
  const jwe = await new CompactEncrypt(Buffer.from(JSON.stringify(ANSWER)))
    .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM' })
    .setKeyManagementParameters({ apu: Buffer.from('Mayfly'), apv: Buffer.from('agent') })
    .encrypt(createPublicKey({ key: { ...key.publicJwk }, format: 'jwk' }))
  expect(await key.open(jwe)).toEqual(ANSWER)
})

test('refuses an answer that is sealed to another key', async () => {
  const [mine, other] = [await newAnswerKey(), await newAnswerKey()]
  await expect(mine.open(await sealedTo(other.publicJwk))).rejects.toThrow('not sealed to this key')
})

describe('refuses a hostile answer', () => {
  const flip = (part: string) => (part.startsWith('A') ? `B${part.slice(1)}` : `A${part.slice(1)}`)
  const headed = (change: object) => (parts: string[]) => {
    const header = JSON.parse(Buffer.from(parts[0] ?? '', 'base64url').toString())
    return [Buffer.from(JSON.stringify({ ...header, ...change })).toString('base64url'), ...parts.slice(1)]
  }
  test.each<[string, (parts: string[]) => string[]]>([
    ['a changed text', ([a = '', b = '', c = '', d = '', e = '']) => [a, b, c, flip(d), e]],
    ['a changed tag', ([a = '', b = '', c = '', d = '', e = '']) => [a, b, c, d, flip(e)]],
    ['a short tag', ([a = '', b = '', c = '', d = '', e = '']) => [a, b, c, d, e.slice(0, 6)]],
    ['a changed nonce', ([a = '', b = '', c = '', d = '', e = '']) => [a, b, flip(c), d, e]],
    ['a wrapped key', ([a = '', , c = '', d = '', e = '']) => [a, 'AAAA', c, d, e]],
    ['four parts', (parts) => parts.slice(0, 4)],
    ['six parts', (parts) => [...parts, '']],
    ['nothing', () => []],
    ['no base64', ([a = '', b = '', c = '', , e = '']) => [a, b, c, '%%%', e]],
    ['another algorithm', headed({ alg: 'dir' })],
    ['another cipher', headed({ enc: 'A128GCM' })],
    ['a critical extension', headed({ crit: ['x'] })],
    ['no ephemeral key', headed({ epk: null })],
    ['a point of small order', headed({ epk: { kty: 'OKP', crv: 'X25519', x: 'A'.repeat(43) } })],
    ['an added member', headed({ typ: 'x' })],
  ])('%s', async (_, change) => {
    const key = await newAnswerKey()
    const sealed = await sealedTo(key.publicJwk)
    await expect(key.open(change(sealed.split('.')).join('.'))).rejects.toThrow()
  })

  test.each([
    [{}],
    [{ ...ANSWER, oidc: null }],
    [{ ...ANSWER, scopes: 'demo' }],
    [{ ...ANSWER, agent_id: 1 }],
  ])('refuses an answer of another form: %j', async (answer) => {
    const key = await newAnswerKey()
    await expect(key.open(await sealedTo(key.publicJwk, answer))).rejects.toThrow('not from a Mayfly server')
  })
})
