import Type from 'typebox'
import { BackendError } from '../../domain/backend-error.ts'
import { isScope } from '../../domain/scope.ts'
import { accountName } from '../account-name.ts'
import type { Backend, Host, Kind } from '../kind.ts'
import { givenBy, readNamed, requireGiven } from '../named-scopes.ts'
import { type Client, createClient } from './client.ts'
import { type Config, requireConsistent, secretConfig, tokenConfig } from './config.ts'
import { createToken, listRoles, readSecret, revokeRole, undo } from './issue.ts'
import { preflight } from './preflight.ts'

const params = Type.Object({}, { additionalProperties: false })
type Params = Type.Static<typeof params>

const shared = {
  serviceAccounts: ['vault', 'openbao'],
  params,
  limits: { minTtlMs: 1_000, why: 'Vault counts lifetimes in whole seconds.' },
  revocation: 'exact',
  upstream: true,
  async complete<C extends Config>(settings: C): Promise<C> {
    requireConsistent(settings)
    return settings
  },
} as const

/** A token with the policies that the scopes name, created against a token role of its own. */
export const vault: Kind<typeof tokenConfig, typeof params> = {
  ...shared,
  type: 'vault',
  title: 'Vault or OpenBao token',
  config: tokenConfig,
  scopes: {
    valid: isScope,
    gives: ({ policies }, scope) => givenBy(readNamed(policies), scope).length > 0,
    forms: [
      { form: '<policy>', gives: 'do what the policy permits' },
      { form: '*', gives: 'do what all configured policies permit' },
    ],
    help: 'Names of the configured policies; a * is all that it matches.',
  },
  environment: {
    VAULT_ADDR: '{address}',
    VAULT_TOKEN: '{token}',
    BAO_ADDR: '{address}',
    BAO_TOKEN: '{token}',
  },
  async open(settings, host): Promise<Backend<Params>> {
    const opened = openShared(settings, host)
    const named = readNamed(settings.policies)
    return {
      ...opened,
      async issue(request, signal) {
        const policies = requireGiven(named, request.scopes).flatMap((text) => text.split(' '))
        // Vault would give a token without policies all of Mayfly's.
        if (policies.length === 0) throw new BackendError('unsupported', 'A token needs at least one policy.')
        const asked = [...new Set(policies)]
        const made = await createToken(opened.client, host.now(), request, asked, signal)
        return {
          fields: { token: made.token, address: settings.address, accessor: made.accessor },
          handle: { role: accountName(request.credentialId) },
          upstreamExpiresAt: made.expiresAt,
          facts: { accessor: made.accessor, policies: asked.join(' ') },
        }
      },
    }
  },
}

/** A dynamic secret of one path, such as a login of a database. */
export const vaultSecret: Kind<typeof secretConfig, typeof params> = {
  ...shared,
  type: 'vault-secret',
  title: 'Dynamic secret of Vault or OpenBao',
  config: secretConfig,
  scopes: {
    valid: isScope,
    gives: ({ secrets }, scope) => givenBy(readNamed(secrets), scope).length > 0,
    forms: [{ form: '<secret>', gives: 'do what the secret of this path permits' }],
    help: 'The name of one configured path: a credential is one secret.',
  },
  async open(settings, host): Promise<Backend<Params>> {
    const opened = openShared(settings, host)
    const named = readNamed(settings.secrets)
    return {
      ...opened,
      async issue(request, signal) {
        const [path, ...others] = requireGiven(named, request.scopes)
        if (path === undefined || others.length > 0) {
          throw new BackendError('unsupported', 'A credential is one secret; the scopes must name one path.')
        }
        const role = accountName(request.credentialId)
        const now = host.now()
        const made = await createToken(opened.client, now, request, undefined, signal)
        const secret = await readSecret(opened.client, path, made.token, signal).catch(
          async (error: unknown) => {
            if (isCertain(error)) await undo(opened.client, role, signal)
            throw error
          },
        )
        return {
          fields: secret.fields,
          handle: { role, lease: secret.lease },
          upstreamExpiresAt: Math.min(made.expiresAt, now + secret.lifetime),
          facts: { path, accessor: made.accessor },
        }
      },
    }
  },
}

const isCertain = (error: unknown) =>
  error instanceof BackendError && error.fault !== 'unavailable' && error.fault !== 'timeout'

function openShared(settings: Config, host: Host) {
  requireConsistent(settings)
  const client: Client = createClient(settings, host)
  return {
    client,
    check: (signal: AbortSignal) => preflight(settings, client, signal),
    revoke: (handle: Parameters<typeof revokeRole>[1], signal: AbortSignal) =>
      revokeRole(client, handle, signal),
    recover: (credentialId: string) => ({ role: accountName(credentialId) }),
    list: (after: string | undefined, signal: AbortSignal) => listRoles(client, after, signal),
    [Symbol.asyncDispose]: async () => client[Symbol.asyncDispose](),
  }
}
