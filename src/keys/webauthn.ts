import { createHash, randomBytes } from 'node:crypto'
import { CHALLENGE_MS } from '../domain/limits.ts'
import type { RelyingParty } from '../domain/people/relying-party.ts'
import type { Passkey } from '../domain/people/session.ts'
import type { Hasher } from './bearer.ts'

/** Loaded with the first person who logs in: nobody else needs it. */
const library = () => import('@simplewebauthn/server')

/** ES256, EdDSA and RS256, as COSE numbers them: what authenticators have. */
const ALGORITHMS = [-7, -8, -257]

/** What a browser makes of an authenticator's answer to a registration (WebAuthn Level 3, §5.1, `toJSON`). */
export interface RegistrationAnswer {
  readonly id: string
  readonly rawId: string
  readonly type: string
  readonly response: {
    readonly clientDataJSON: string
    readonly attestationObject: string
    readonly transports?: readonly string[] | undefined
  }
}

/** The same for a login or a confirmation. */
export interface AssertionAnswer {
  readonly id: string
  readonly rawId: string
  readonly type: string
  readonly response: {
    readonly clientDataJSON: string
    readonly authenticatorData: string
    readonly signature: string
    readonly userHandle?: string | null | undefined
  }
}

export type NewCredential = Pick<Passkey, 'credentialId' | 'publicKey' | 'counter' | 'backup' | 'transports'>

export const sha256 = (text: string): string => createHash('sha256').update(text, 'utf8').digest('base64url')

/** 256 random bits. */
export const newNonce = (): string => randomBytes(32).toString('base64url')

/** The handle of a user is what their authenticator returns with an assertion: the operator's id. */
export const userHandleOf = (operatorId: string): string => Buffer.from(operatorId).toString('base64url')

/**
 * A challenge for somebody who is not known yet. It proves by itself that it is ours and how old it is, so that asking for
 * one leaves nothing in the store.
 */
export function mintLoginChallenge(hasher: Hasher, now: number): string {
  const text = `${now}.${newNonce()}`
  return Buffer.from(`${text}.${hasher.hash(`login challenge|${text}`)}`).toString('base64url')
}

/** Until when the challenge may be answered; undefined: it is not ours, or too old. */
export function readLoginChallenge(hasher: Hasher, challenge: string, now: number): number | undefined {
  if (challenge.length > 256) return undefined
  const [, text = '', time = '', mac = ''] =
    /^((\d{1,15})\.[A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/.exec(
      Buffer.from(challenge, 'base64url').toString('latin1'),
    ) ?? []
  const until = Number(time) + CHALLENGE_MS
  return hasher.matches(`login challenge|${text}`, mac) && until > now ? until : undefined
}

/** The challenge that the browser says it was given; undefined: it says nothing readable. Proves nothing. */
export function claimedChallenge({ response }: RegistrationAnswer | AssertionAnswer): string | undefined {
  try {
    const data: unknown = JSON.parse(Buffer.from(response.clientDataJSON, 'base64url').toString('utf8'))
    const challenge: unknown = Reflect.get(Object(data), 'challenge')
    return typeof challenge === 'string' ? challenge : undefined
  } catch {
    return undefined
  }
}

/** `PublicKeyCredentialCreationOptionsJSON`: a discoverable credential with user verification, without attestation. */
export function registrationOptions(
  { id: rpId }: RelyingParty,
  user: { readonly id: string; readonly email: string; readonly name: string },
  challenge: string,
  known: readonly Passkey[],
): object {
  return {
    rp: { id: rpId, name: 'Mayfly' },
    user: { id: userHandleOf(user.id), name: user.email, displayName: user.name },
    challenge,
    pubKeyCredParams: ALGORITHMS.map((alg) => ({ type: 'public-key', alg })),
    timeout: CHALLENGE_MS,
    excludeCredentials: known.map(describe),
    authenticatorSelection: {
      residentKey: 'required',
      requireResidentKey: true,
      userVerification: 'required',
    },
    attestation: 'none',
  }
}

/** `PublicKeyCredentialRequestOptionsJSON`. Without credentials, the authenticator offers those that it has. */
export function assertionOptions(
  { id: rpId }: RelyingParty,
  challenge: string,
  allowed: readonly Passkey[] = [],
): object {
  return {
    challenge,
    rpId,
    timeout: CHALLENGE_MS,
    userVerification: 'required',
    allowCredentials: allowed.map(describe),
  }
}

function describe({ credentialId, transports }: Passkey): object {
  return { type: 'public-key', id: credentialId, ...(transports.length > 0 && { transports }) }
}

/** Never throws: what cannot be read is refused. */
export async function verifyRegistration(
  party: RelyingParty,
  answer: RegistrationAnswer,
  challenge: string,
): Promise<NewCredential | undefined> {
  try {
    if (!(await isUnattested(answer.response.attestationObject))) return undefined
    const { verifyRegistrationResponse } = await library()
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response: { ...answer, clientExtensionResults: {} } as never,
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    })
    if (!verified) return undefined
    const { credential, credentialDeviceType, credentialBackedUp } = registrationInfo
    return {
      credentialId: credential.id,
      publicKey: Buffer.from(credential.publicKey).toString('base64url'),
      counter: credential.counter,
      backup: backupOf(credentialDeviceType, credentialBackedUp),
      transports: answer.response.transports ?? [],
    }
  } catch {
    return undefined
  }
}

/**
 * A statement with certificates is nothing that we asked for, and the library would fetch the revocation lists that they
 * name, from anywhere. `none`, or an authenticator's signature by the key itself, names nothing.
 */
async function isUnattested(attestationObject: string): Promise<boolean> {
  const { decodeAttestationObject } = await import('@simplewebauthn/server/helpers')
  const decoded = decodeAttestationObject(new Uint8Array(Buffer.from(attestationObject, 'base64url')))
  const format: string = decoded.get('fmt')
  return format === 'none' || (format === 'packed' && decoded.get('attStmt').get('x5c') === undefined)
}

/**
 * What the answer says of the credential now, if it answers this challenge at our origin, with user verification. Never
 * throws.
 */
export async function verifyAssertion(
  party: RelyingParty,
  answer: AssertionAnswer,
  challenge: string,
  passkey: Passkey | undefined,
): Promise<Pick<Passkey, 'counter' | 'backup'> | undefined> {
  const { credentialId, publicKey, counter } = passkey ?? STAND_IN
  try {
    const { verifyAuthenticationResponse } = await library()
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: { ...answer, clientExtensionResults: {} } as never,
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserVerification: true,
      credential: {
        id: credentialId,
        publicKey: new Uint8Array(Buffer.from(publicKey, 'base64url')),
        counter,
      },
    })
    if (!verified || passkey === undefined || answer.id !== credentialId) return undefined
    const { newCounter, credentialDeviceType, credentialBackedUp } = authenticationInfo
    return { counter: newCounter, backup: backupOf(credentialDeviceType, credentialBackedUp) }
  } catch {
    return undefined
  }
}

/** For a credential that nobody has: its check takes as long as that of a known one. A point of P-256 (its generator). */
const STAND_IN = {
  credentialId: '',
  counter: 0,
  publicKey: Buffer.from(
    `a5010203262001215820${'6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296'}225820${'4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5'}`,
    'hex',
  ).toString('base64url'),
} as const

function backupOf(deviceType: string, isBackedUp: boolean): Passkey['backup'] {
  if (isBackedUp) return 'backed_up'
  return deviceType === 'multiDevice' ? 'eligible' : 'none'
}
