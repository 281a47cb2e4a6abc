import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

/** An authenticator in software: makes and uses ES256 credentials, and says what it is told about itself. */
export interface Authenticator {
  readonly credentialId: string
  create(options: CreationOptions, says?: Says): Registration
  get(options: RequestOptions, says?: Says): Assertion
}

interface CreationOptions {
  readonly challenge: string
  readonly rp: { readonly id: string }
  readonly user: { readonly id: string }
}
interface RequestOptions {
  readonly challenge: string
  readonly rpId: string
}

/** Instead of the truth. */
export interface Says {
  origin?: string
  rpId?: string
  challenge?: string
  type?: string
  /** User present 1, verified 4, eligible for backup 8, backed up 16. */
  flags?: number
  counter?: number
  userHandle?: string | null
  id?: string
  crossOrigin?: boolean
  topOrigin?: string
  attestation?: Buffer
}

interface Answer<R> {
  id: string
  rawId: string
  type: 'public-key'
  clientExtensionResults: object
  response: R
}
export type Registration = Answer<{ clientDataJSON: string; attestationObject: string; transports: string[] }>
export type Assertion = Answer<{
  clientDataJSON: string
  authenticatorData: string
  signature: string
  userHandle: string | null
}>

const sha256 = (data: string | Buffer) => createHash('sha256').update(data).digest()
const head = (major: number, length: number) =>
  length < 24
    ? Buffer.from([(major << 5) | length])
    : length < 256
      ? Buffer.from([(major << 5) | 24, length])
      : Buffer.from([(major << 5) | 25, length >> 8, length & 255])
const cborBytes = (bytes: Buffer) => Buffer.concat([head(2, bytes.length), bytes])
const cborText = (text: string) => Buffer.concat([head(3, Buffer.byteLength(text)), Buffer.from(text)])

/** `{fmt: "none", attStmt: {}, authData}` (WebAuthn Level 3, §8.7), or another format and statement. */
export const attestationObject = (authData: Buffer, format = 'none', statement = Buffer.from([0xa0])) =>
  Buffer.concat([
    Buffer.from([0xa3]),
    cborText('fmt'),
    cborText(format),
    cborText('attStmt'),
    statement,
    cborText('authData'),
    cborBytes(authData),
  ])

export function createAuthenticator(origin: string): Authenticator {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const id = randomBytes(32)
  let counter = 0
  let userHandle = ''
  const authData = (rpId: string, says: Says, extra = Buffer.alloc(0), flags = 5) => {
    counter += 1
    const count = Buffer.alloc(4)
    count.writeUInt32BE(says.counter ?? counter)
    return Buffer.concat([sha256(says.rpId ?? rpId), Buffer.from([says.flags ?? flags]), count, extra])
  }
  const clientData = (type: string, challenge: string, says: Says) =>
    Buffer.from(
      JSON.stringify({
        type: says.type ?? type,
        challenge: says.challenge ?? challenge,
        origin: says.origin ?? origin,
        crossOrigin: says.crossOrigin ?? false,
        ...(says.topOrigin === undefined ? {} : { topOrigin: says.topOrigin }),
      }),
    ).toString('base64url')
  const credentialId = id.toString('base64url')
  const answer = (says: Says) => ({
    id: says.id ?? credentialId,
    rawId: says.id ?? credentialId,
    type: 'public-key' as const,
    clientExtensionResults: {},
  })
  return {
    credentialId,
    create({ challenge, rp, user }, says = {}) {
      userHandle = user.id
      const length = Buffer.from([0, id.length])
      const data = authData(
        rp.id,
        says,
        Buffer.concat([Buffer.alloc(16), length, id, coseKey(publicKey)]),
        0x45,
      )
      return {
        ...answer(says),
        response: {
          clientDataJSON: clientData('webauthn.create', challenge, says),
          attestationObject: (says.attestation ?? attestationObject(data)).toString('base64url'),
          transports: ['internal'],
        },
      }
    },
    get({ challenge, rpId }, says = {}) {
      const data = authData(rpId, says)
      const client = clientData('webauthn.get', challenge, says)
      const signed = Buffer.concat([data, sha256(Buffer.from(client, 'base64url'))])
      return {
        ...answer(says),
        response: {
          clientDataJSON: client,
          authenticatorData: data.toString('base64url'),
          signature: sign('sha256', signed, privateKey).toString('base64url'),
          userHandle: says.userHandle === undefined ? userHandle : says.userHandle,
        },
      }
    },
  }
}

function coseKey(publicKey: KeyObject): Buffer {
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' })
  return Buffer.concat([
    Buffer.from([0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21]),
    cborBytes(Buffer.from(x, 'base64url')),
    Buffer.from([0x22]),
    cborBytes(Buffer.from(y, 'base64url')),
  ])
}

/** The header in which a confirmation travels. */
export const confirmationHeader = (assertion: Assertion): string =>
  Buffer.from(JSON.stringify(assertion)).toString('base64url')
