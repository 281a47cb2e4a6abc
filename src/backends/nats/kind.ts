import { sign } from 'node:crypto'
import { promisify } from 'node:util'
import type { Static } from 'typebox'
import { misconfigured, unsupported } from '../../domain/backend-error.ts'
import { accountName } from '../account-name.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import * as Field from '../fields.ts'
import { endingAt, requireShort, wholeSeconds } from '../issued.ts'
import type { Host, Issued, IssueRequest } from '../kind.ts'
import { type AccountKey, accountKeyOf, isAccountId, newUserKey, type UserKey } from './nkeys.ts'
import { isOurScope, permissionsOf } from './scopes.ts'

const signAsync = promisify(sign)

const example = {
  url: 'tls://nats.example.com:4222',
  account: 'ABJHLOVMPA4CI6R5KLNGOB4GSLNIY7IOUPAJC4YFNDLQVIOBYQGUWVLA',
  signing_key: 'SAANJIBNEKGCRUWJCPIWUXFBFJLR36FJTFKGBGKAT7AQXH2LVFNQWZJMQU',
}

const config = Field.configOf(example, {
  // Agents send what they publish there.
  url: Field.protection(
    'Address of the servers for agents, tls://host:4222; several with commas between them.',
    { pattern: '^(nats|tls|wss?)://[A-Za-z0-9._:\\[\\]/,-]+$', maxLength: 1024 },
  ),
  account: Field.text('Public key of the account, which begins with A.', {
    minLength: 56,
    maxLength: 56,
    pattern: '^A[A-Z2-7]+$',
  }),
  signing_key: Field.secret(
    'Seed of a signing key of the account, or of the account itself; it begins with SA.',
    { minLength: 58, maxLength: 64 },
  ),
})
type Config = Static<typeof config>

/** NATS with decentralised authentication: short user JWTs, signed by a key of the account, without a server. */
export const nats = defineKind({
  type: 'nats',
  title: 'NATS',
  config,
  limits: { minTtlMs: 1_000, why: 'A JWT counts its expiry in whole seconds.' },
  revocation: 'expiry_only',
  upstream: false,
  scopes: {
    valid: isOurScope,
    forms: [
      { form: 'orders.<name>:sub', gives: 'subscribe to a subject' },
      { form: 'orders.<name>:pub', gives: 'publish to a subject' },
      { form: 'orders.<name>', gives: 'do both' },
      { form: 'orders.*:sub', gives: 'subscribe to all subjects that begin with these tokens' },
      { form: '_INBOX.*:sub', gives: 'receive the replies to its own requests' },
      { form: '*', gives: 'publish and subscribe to all subjects of the account' },
    ],
    help:
      '<subject>, <subject>:pub or <subject>:sub. The last token of the subject may be *, for one or more tokens, as > in NATS. ' +
      'Subjects that begin with $ are only in *.',
  },
  environment: { NATS_URL: '{url}', NATS_CREDS: { file: '{creds}' } },
  validate: requireConsistent,
  open: openNats,
})

function requireConsistent({ account, signing_key }: Config): AccountKey {
  if (!isAccountId(account)) {
    throw misconfigured('"account" is not the public key of an account.')
  }
  return accountKeyOf(signing_key)
}

async function openNats(settings: Config, _host: Host, key: AccountKey): Promise<Opened> {
  return {
    async check() {
      await signed(key, '{}')
      return []
    },
    issue: (request) => issueUser(settings, key, request),
  }
}

async function issueUser(settings: Config, key: AccountKey, request: IssueRequest<unknown>): Promise<Issued> {
  const { credentialId, scopes, issuedAt, expiresAt } = request
  if (!scopes.every(isOurScope)) throw unsupported('A scope is not well formed.')
  const exp = wholeSeconds(request, 'a JWT')
  const user = await newUserKey()
  const name = accountName(credentialId)
  const claims = {
    jti: credentialId,
    iat: Math.floor(issuedAt / 1000),
    exp,
    iss: key.id,
    aud: 'NATS',
    name,
    sub: user.id,
    nats: userClaims(settings, key, scopes),
  }
  const jwt = requireShort(await signed(key, JSON.stringify(claims)))
  return {
    fields: { jwt, seed: user.seed, creds: credsFile(jwt, user), url: settings.url, user: user.id },
    facts: { user: user.id },
    ...endingAt(exp * 1000, expiresAt),
  }
}

/** The claims of a user, version 2: https://docs.nats.io/running-a-nats-service/configuration/securing_nats/auth_intro/jwt */
function userClaims({ account }: Config, { id }: AccountKey, scopes: readonly string[]) {
  return {
    ...permissionsOf(scopes),
    // No limits of its own, beside those of the account.
    subs: -1,
    data: -1,
    payload: -1,
    type: 'user',
    version: 2,
    // A signing key says for which account it signs.
    ...(id === account ? {} : { issuer_account: account }),
  }
}

const HEADER = Buffer.from('{"typ":"JWT","alg":"ed25519-nkey"}').toString('base64url')

async function signed({ privateKey }: AccountKey, claims: string): Promise<string> {
  const text = `${HEADER}.${Buffer.from(claims).toString('base64url')}`
  // `null`: Ed25519 has its own hash.
  const signature = await signAsync(null, Buffer.from(text), privateKey)
  return `${text}.${signature.toString('base64url')}`
}

/** As nsc writes it; every client of NATS reads this form. */
function credsFile(jwt: string, { seed }: UserKey): string {
  return `-----BEGIN NATS USER JWT-----
${jwt}
------END NATS USER JWT------

-----BEGIN USER NKEY SEED-----
${seed}
------END USER NKEY SEED------
`
}
