import { isScope } from '../../domain/scope.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import { endingAt } from '../issued.ts'
import type { Host, Issued, IssueRequest } from '../kind.ts'
import { matches, oneMatch } from '../named-scopes.ts'
import { takeToken } from './client.ts'
import { type Config, config, type Login, requireConsistent } from './config.ts'
import { usesOf } from './uses.ts'

const NAMED = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,140}\*?$/

const REFUSALS = {
  none: 'A scope names no resource of the backend.',
  several: 'A token of Azure is for one resource; request exactly one.',
}

/** Access tokens of an application in Microsoft Entra, each for one resource. */
export const azure = defineKind({
  type: 'azure',
  title: 'Microsoft Azure',
  config,
  // Whatever is asked ("Configurable token lifetimes in the Microsoft identity platform").
  limits: { maxTtlMs: 86_400_000, why: 'Microsoft Entra decides the lifetime of a token: 60 to 90 minutes.' },
  revocation: 'expiry_only',
  scopes: {
    valid: (scope) => isScope(scope) && (scope === '*' || NAMED.test(scope)),
    gives: (settings, scope) => settings.resources.some((one) => matches(scope, one)),
    forms: [
      { form: 'management.azure.com', gives: 'use Azure Resource Manager as the application' },
      { form: 'api/<application>', gives: 'use an application of the tenant, api://<application>' },
      { form: '*', gives: 'use the resource of the backend, where it has one only' },
    ],
    help:
      'One of the resources of the backend: a host name such as management.azure.com or vault.azure.net, api/NAME, or an id. ' +
      'A token is for one resource; the roles of the application limit it further.',
  },
  uses: usesOf,
  validate: requireConsistent,
  open: openAzure,
})

async function openAzure(settings: Config, host: Host, login: Login): Promise<Opened> {
  const take = (resource: string, signal: AbortSignal) => takeToken(settings, login, host, resource, signal)
  return {
    async check(signal) {
      // Nobody keeps the token, so there is nothing to end.
      for (const resource of settings.resources) await take(resource, signal)
      return []
    },
    async issue({ scopes, expiresAt }: IssueRequest<unknown>, signal): Promise<Issued> {
      const resource = oneMatch(settings.resources, scopes, REFUSALS)
      const { token, until } = await take(resource, signal)
      return {
        secret: token,
        ...endingAt(until, expiresAt),
        facts: { client_id: settings.client_id, resource },
      }
    },
  }
}
