import type { HttpUse } from '../../domain/use.ts'
import { ALL, httpUse, READING, rules } from '../uses.ts'
import type { Config } from './config.ts'

/** Reading and its list, which is a method of its own (Vault API, "HTTP verbs"). */
const ASK = [...READING, 'LIST']

/** What a token may know of itself and of the server. */
const ASKED = [
  ...['/auth/token/lookup-self', '/sys/health', '/sys/seal-status', '/sys/leader'],
  ...['/sys/internal/ui/mounts/**', '/sys/wrapping/lookup'],
]
const DONE = [
  '/auth/token/renew-self',
  '/auth/token/revoke-self',
  '/auth/token/lookup-self',
  '/sys/capabilities-self',
]

/** Secrets that are stored ("KV secrets engine - version 2 (API)"). */
const KV2 = ['data', 'metadata', 'delete', 'undelete', 'destroy', 'subkeys']
/** Version 1 has nothing before the path; these are its usual mounts. */
const KV1 = ['/secret/**', '/kv/**', '/cubbyhole/**']
/** Encryption as a service: the keys stay in Vault ("Transit secrets engine (API)"). */
const TRANSIT = ['encrypt', 'decrypt', 'rewrap', 'sign', 'verify', 'hmac', 'hash']

/**
 * What is stored, and what is done without handing anything out. Everything that issues (tokens, logins, `creds`, certificates) and
 * nearly all of `sys` is missing. A mount has one part here: with two, `database/creds/data` would read as one of KV.
 */
export function usesOf(
  { address, namespace, local, ca }: Config,
  scopes: readonly string[],
): readonly HttpUse[] {
  if (scopes.length === 0) return []
  // The namespace is a header, or in front of the path.
  const roots = ['/v1', ...(namespace === undefined ? [] : [`/v1/${namespace}`])]
  const below = (paths: readonly string[]) => roots.flatMap((root) => paths.map((path) => `${root}${path}`))
  return httpUse(
    'api',
    { base: address, local, ca },
    {
      places: [
        { field: 'token', in: 'header', name: 'x-vault-token' },
        { field: 'token', in: 'header', name: 'authorization' },
      ],
      allow: [
        ...rules(ASK, below(ASKED)),
        ...rules(['POST', 'PUT'], below(DONE)),
        ...rules([...ALL, 'LIST'], below([...KV2.map((word) => `/*/${word}/**`), ...KV1])),
        ...rules(['POST', 'PUT'], below(TRANSIT.map((word) => `/transit/${word}/**`))),
      ],
      // A login whose method is mounted with such a name.
      deny: rules(['*'], below(KV2.map((word) => `/auth/${word}/**`))),
    },
  )
}
