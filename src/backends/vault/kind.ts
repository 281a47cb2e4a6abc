import { BackendError, unsupported } from '../../domain/backend-error.ts'
import { isScope } from '../../domain/scope.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import type { Host } from '../kind.ts'
import { givenBy, readNamed, requireGiven } from '../named-scopes.ts'
import { type Client, createClient } from './client.ts'
import { type Config, requireConsistent, secretConfig, tokenConfig } from './config.ts'
import { createToken, listRoles, readSecret, revokeRole, roles, undo } from './issue.ts'
import { preflight } from './preflight.ts'
import { usesOf } from './uses.ts'

const shared = {
  serviceAccounts: ['vault', 'openbao'],
  limits: { minTtlMs: 1_000, why: 'Vault counts lifetimes in whole seconds.' },
  revocation: 'exact',
  validate: requireConsistent,
} as const

/** A token with the policies that the scopes name, created against a token role of its own. */
export const vault = defineKind({
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
  uses: usesOf,
  async open(settings, host): Promise<Opened> {
    const opened = openShared(settings, host)
    const named = readNamed(settings.policies)
    return {
      ...opened,
      async issue(request, signal) {
        const policies = requireGiven(named, request.scopes).flatMap((text) => text.split(' '))
        // Vault would give a token without policies all of Mayfly's.
        if (policies.length === 0) throw unsupported('A token needs at least one policy.')
        const asked = [...new Set(policies)]
        const made = await createToken(opened.client, host.now(), request, asked, signal)
        return {
          fields: { token: made.token, address: settings.address, accessor: made.accessor },
          handle: roles.recover(request.credentialId),
          upstreamExpiresAt: made.expiresAt,
          facts: { accessor: made.accessor, policies: asked.join(' ') },
        }
      },
    }
  },
})

/** A dynamic secret of one path, such as a login of a database. */
export const vaultSecret = defineKind({
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
  async open(settings, host): Promise<Opened> {
    const opened = openShared(settings, host)
    const named = readNamed(settings.secrets)
    return {
      ...opened,
      async issue(request, signal) {
        const [path, ...others] = requireGiven(named, request.scopes)
        if (path === undefined || others.length > 0) {
          throw unsupported('A credential is one secret; the scopes must name one path.')
        }
        const role = roles.nameOf(request.credentialId)
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
})

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
    recover: roles.recover,
    list: (after: string | undefined, signal: AbortSignal) => listRoles(client, after, signal),
    [Symbol.asyncDispose]: async () => client[Symbol.asyncDispose](),
  }
}
