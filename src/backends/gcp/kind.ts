import { unsupported } from '../../domain/backend-error.ts'
import { isScope } from '../../domain/scope.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import { endingAt } from '../issued.ts'
import type { Host, Issued, IssueRequest } from '../kind.ts'
import { createClient } from './client.ts'
import { type Config, config, requireConsistent, type ServiceAccountKey } from './config.ts'
import { usesOf } from './uses.ts'

const NAMED = /^[a-z][a-z0-9._/-]{0,127}$/
const MAX_TTL_MS = 12 * 3_600_000
const CHECK_SCOPE = 'userinfo.email'
const CHECK_S = 300

/** Access tokens of a service account that Mayfly impersonates, by a key or by its own id tokens. */
export const gcp = defineKind({
  type: 'gcp',
  title: 'Google Cloud',
  config,
  limits: {
    minTtlMs: 1_000,
    maxTtlMs: MAX_TTL_MS,
    why: 'Google makes tokens for up to an hour, or 12 where an organization policy permits it.',
  },
  revocation: 'expiry_only',
  scopes: {
    valid: (scope) => isScope(scope) && (scope === '*' || NAMED.test(scope)),
    gives: isWithin,
    forms: [
      { form: 'devstorage.read_only', gives: 'read Cloud Storage, as far as the service account may' },
      { form: 'cloud-platform', gives: 'do all that the service account may' },
      { form: '*', gives: 'do all that the OAuth scopes of the backend permit' },
    ],
    help:
      'An OAuth scope of Google without https://www.googleapis.com/auth/, such as devstorage.read_only; ' +
      '* is those of the backend. The IAM roles of the service account limit each.',
  },
  environment: { CLOUDSDK_AUTH_ACCESS_TOKEN: '{secret}', GOOGLE_OAUTH_ACCESS_TOKEN: '{secret}' },
  uses: usesOf,
  validate: requireConsistent,
  open: openGcp,
})

/**
 * An agent that holds `*` may ask for every scope by its name, so none goes beyond what `*` stands for. Not all others are within
 * cloud-platform: drive and gmail, for example, are data of people.
 */
function isWithin({ oauth_scopes: ours }: Config, scope: string): boolean {
  return scope === '*' || ours.includes(scope)
}

async function openGcp(settings: Config, host: Host, key: ServiceAccountKey | undefined): Promise<Opened> {
  const client = createClient(settings, key, host)
  return {
    async check(signal) {
      await client.logIn(signal)
      // Never leaves Mayfly, and names only its account.
      await client.generate([CHECK_SCOPE], CHECK_S, signal)
      return []
    },
    async issue({ scopes, expiresAt }: IssueRequest<unknown>, signal): Promise<Issued> {
      if (!scopes.every((scope) => isWithin(settings, scope)))
        throw unsupported('A scope is not among the OAuth scopes of the backend.')
      await client.logIn(signal)
      const asked = new Set(scopes.flatMap((scope) => (scope === '*' ? settings.oauth_scopes : [scope])))
      if (asked.size === 0) throw unsupported('Google has no token without an OAuth scope.')
      const seconds = Math.floor((expiresAt - host.now()) / 1000)
      if (seconds < 1) throw unsupported('Google counts lifetimes in whole seconds.')
      const { token, until } = await client.generate([...asked], seconds, signal)
      return {
        secret: token,
        ...endingAt(until, expiresAt),
        facts: { service_account: settings.service_account, oauth_scopes: [...asked].join(' ') },
      }
    },
  }
}
