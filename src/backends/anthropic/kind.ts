import type { Static } from 'typebox'
import { type BackendError, denied, misconfigured } from '../../domain/backend-error.ts'
import { isScope } from '../../domain/scope.ts'
import { defineKind, type Opened } from '../define-kind.ts'
import * as Field from '../fields.ts'
import { requireHttps } from '../fields.ts'
import { endingAt } from '../issued.ts'
import { callJson, detailOf, type JsonReply, notUnderstood, textIn } from '../json-api.ts'
import type { Host, Issued, IssueRequest } from '../kind.ts'
import { matches, oneMatch } from '../named-scopes.ts'
import { usesOf } from './uses.ts'

const NAME = 'Anthropic'
/**
 * Tokens are "capped at max(60, min(this value, 2 × remaining assertion validity))" (SDK, token_lifetime_seconds of a rule), so an
 * assertion for half of the lifetime makes a token that lasts no longer than the credential.
 */
const ASSERTION_SHARE = 2
/** Time on the way to Anthropic, which an assertion for a short token must survive. */
const LEAST_ASSERTION_MS = 30_000
/** Of the exchange; the first one of every request with such a token (SDK, lib/credentials/types). */
const BETA = 'oauth-2025-04-20,oidc-federation-2026-04-01'
const WORKSPACE = '(?:default|wrkspc_[A-Za-z0-9]{1,64})'

const example = {
  organization_id: '00000000-0000-0000-0000-000000000000',
  federation_rule_id: 'fdrl_01abc',
  service_account_id: 'svac_01abc',
  workspaces: ['wrkspc_01abc'],
}

const config = Field.configOf(example, {
  organization_id: Field.text('Organization: a UUID, in the settings of the Console.', {
    pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$',
  }),
  federation_rule_id: Field.text('Federation rule that trusts Mayfly, fdrl_….', {
    pattern: '^fdrl_[A-Za-z0-9]{1,64}$',
  }),
  service_account_id: Field.text('Service account that agents act as, svac_….', {
    pattern: '^svac_[A-Za-z0-9]{1,64}$',
  }),
  workspaces: Field.list(
    Field.text('Workspace.', { pattern: `^${WORKSPACE}$` }),
    64,
    'Workspaces for which tokens are made: wrkspc_…, or default.',
    { default: ['default'] },
  ),
  audience: Field.text('Audience of the id token, as the federation rule expects it.', {
    minLength: 1,
    maxLength: 512,
    default: 'https://api.anthropic.com',
  }),
  // Mayfly's id token is sent there.
  base_url: Field.guarded(
    Field.upstream('Address of the API.', {
      maxLength: 512,
      pattern: '^https?://[^\\s?#]+[^\\s?#/]$',
      default: 'https://api.anthropic.com',
    }),
    'https://api.anthropic.com',
  ),
  local: Field.local(
    'The API is on this machine or in its own network: permits loopback addresses and http.',
  ),
  local_user: Field.localUser(),
})
export type Config = Static<typeof config>

const NAMED = /^[A-Za-z][A-Za-z0-9_]{0,79}\*?$/

const REFUSALS = {
  none: 'A scope names no workspace of the backend.',
  several: 'A token of Anthropic is for one workspace; request exactly one.',
}

/** Tokens of a service account, by Workload Identity Federation: Mayfly's id token is all that Anthropic asks for. */
export const anthropic = defineKind({
  type: 'anthropic',
  title: 'Anthropic',
  config,
  limits: {
    minTtlMs: 60_000,
    maxTtlMs: 86_400_000,
    why: 'Anthropic makes tokens of at least a minute, and of at most the lifetime in the federation rule.',
  },
  revocation: 'expiry_only',
  scopes: {
    valid: (scope) => isScope(scope) && (scope === '*' || NAMED.test(scope)),
    gives: (settings, scope) => settings.workspaces.some((one) => matches(scope, one)),
    forms: [
      { form: 'default', gives: 'use the API in the default workspace' },
      { form: '<workspace>', gives: 'use the API in a workspace, by its id' },
      { form: '*', gives: 'use the API in the workspace of the backend, where it has one only' },
    ],
    help:
      'One of the workspaces of the backend: default, or an id that begins with wrkspc_. A token is for one workspace; ' +
      'the federation rule limits it further.',
  },
  environment: {
    ANTHROPIC_AUTH_TOKEN: '{secret}',
    // Where the token comes from this variable, no client sends the header, and the API refuses a token of OAuth without it.
    ANTHROPIC_CUSTOM_HEADERS: 'anthropic-beta: oauth-2025-04-20',
  },
  uses: usesOf,
  validate: requireConsistent,
  open: openAnthropic,
})

async function openAnthropic(settings: Config, host: Host): Promise<Opened> {
  return {
    async check(signal) {
      // Nobody keeps the token, so there is nothing to end.
      for (const workspace of settings.workspaces)
        await exchange(settings, host, { workspace, lifetimeMs: 0 }, signal)
      return []
    },
    async issue({ scopes, expiresAt }: IssueRequest<unknown>, signal): Promise<Issued> {
      const workspace = oneMatch(settings.workspaces, scopes, REFUSALS)
      const lifetimeMs = expiresAt - host.now()
      const { token, until } = await exchange(settings, host, { workspace, lifetimeMs }, signal)
      return {
        secret: token,
        ...endingAt(until, expiresAt),
        facts: { service_account: settings.service_account_id, workspace },
      }
    },
  }
}

function requireConsistent({ base_url: url, local }: Config): void {
  requireHttps('base_url', url, local)
}

/** "WIF reference", Token exchange request and response. A token belongs to its workspace for good. */
async function exchange(
  settings: Config,
  host: Host,
  { workspace, lifetimeMs }: { workspace: string; lifetimeMs: number },
  signal: AbortSignal,
) {
  const assertion = await host.idToken({
    audience: settings.audience,
    subject: `backend/${host.name}`,
    expiresAt: host.now() + Math.max(LEAST_ASSERTION_MS, lifetimeMs / ASSERTION_SHARE),
  })
  const json = {
    grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    assertion,
    federation_rule_id: settings.federation_rule_id,
    organization_id: settings.organization_id,
    service_account_id: settings.service_account_id,
    workspace_id: workspace,
  }
  const { base_url: base, local } = settings
  const asked = host.now()
  const call = { method: 'POST', headers: { 'anthropic-beta': BETA }, json, signal } as const
  const reply = await callJson(host, NAME, `${base}/v1/oauth/token`, call, { local })
  if (reply.status !== 200) throw refusal(reply)
  const seconds = reply.body?.['expires_in']
  const token = textIn(NAME, reply.body, 'access_token')
  if (typeof seconds !== 'number') throw notUnderstood(NAME)
  return { token, until: asked + seconds * 1000 }
}

/** The error of a refused assertion says no more, so that strangers learn nothing; the Console lists the reason. */
function refusal(reply: JsonReply): BackendError {
  const options = { detail: detailOf(reply) }
  if (reply.status < 400) return notUnderstood(NAME)
  if (reply.status === 400 && reply.body?.['error'] !== 'invalid_grant') {
    return misconfigured('Anthropic does not understand the request: check the ids.', options)
  }
  const why =
    'Anthropic does not accept the id token of Mayfly: check the federation rule, its issuer and its workspaces; the Console lists the reason.'
  return denied(why, { ...options, login: true })
}
