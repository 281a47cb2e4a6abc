import { expect, it } from 'vitest'
import { kinds } from './index.ts'
import { GUARDED_MARK, PROTECTION_MARK, SECRET_MARK, UPSTREAM_MARK } from './kind.ts'

/** Fields of each kind that are secret, select the upstream, protect secrets, and are guarded. A change here is one of security. */
const MARKS: readonly [
  type: string,
  secret: string,
  upstream: string,
  protection: string,
  guarded: string,
][] = [
  ['anthropic', '', 'base_url', 'local', 'base_url local'],
  ['artifactory', 'token', 'base_url', 'ca local', 'local'],
  ['aws', 'secret_access_key', 'role_arn endpoint', 'policies local ca', 'policies endpoint local'],
  [
    'azure',
    'client_secret private_key',
    'tenant_id client_id authority',
    'audience local',
    'authority local',
  ],
  ['cloudflare', 'token', 'base_url account_id', 'ca local', 'local'],
  ['dockerhub', 'password', 'base_url username', 'ca local', 'local'],
  ['doppler', 'token', 'base_url configs', 'ca local', 'local'],
  ['elasticsearch', 'password', 'base_url', 'ca local', 'local'],
  ['gcp', 'key', 'service_account provider endpoint', 'local', 'endpoint local'],
  ['gitea', 'password', 'base_url username', 'ca local', 'local'],
  ['github', 'private_key', 'base_url', 'ca local', 'local'],
  ['gitlab', 'token', 'base_url projects', 'ca local', 'local'],
  ['grafana', 'token', 'base_url', 'ca local', 'local'],
  ['jwt', 'signing_key', '', '', ''],
  ['kubernetes', 'token client_key', 'server home', 'ca audience local', 'audience local'],
  ['ldap', 'bind_password', 'url base', 'tls ca local connect_url', 'tls local'],
  ['mqtt', 'password', 'url', 'ca local connect_url', 'local'],
  ['mysql', 'password', 'host port', 'tls ca local connect_host connect_port', 'tls local'],
  ['nats', 'signing_key', '', 'url', ''],
  [
    'oauth2',
    'client_secret private_key refresh_token subject_token',
    'token_endpoint',
    'assertion_audience subject_audience ca local',
    'subject_audience local',
  ],
  [
    'oauth2-revocable',
    'client_secret private_key refresh_token subject_token',
    'token_endpoint revocation_endpoint',
    'assertion_audience subject_audience ca local',
    'subject_audience local',
  ],
  ['openai', 'admin_key', 'base_url projects', 'ca local', 'local'],
  [
    'postgres',
    'password',
    'host port database',
    'tls ca local statements connect_host connect_port',
    'tls local statements',
  ],
  ['rabbitmq', 'password', 'url', 'ca local amqp_url', 'local'],
  ['redis', 'password', 'host port', 'tls ca local connect_host connect_port', 'tls local'],
  ['registry', 'signing_key', '', 'address ca local', 'local'],
  ['sonarqube', 'token', 'base_url', 'ca local', 'local'],
  ['ssh', 'ca_key', 'ca_public_key', '', ''],
  ['tailscale', 'client_secret', 'base_url tailnet', 'ca local', 'local'],
  ['terraform-cloud', 'token', 'base_url organization', 'ca local', 'local'],
  ['vault', 'secret_id token', 'address namespace', 'ca local', 'local'],
  ['vault-secret', 'secret_id token', 'address namespace', 'ca local', 'local'],
  ['x509', 'ca_key', 'ca_certificate', '', ''],
]

it('marks exactly these fields', () => {
  const marks = [SECRET_MARK, UPSTREAM_MARK, PROTECTION_MARK, GUARDED_MARK]
  const found = kinds.map(({ type, config }) => {
    const marked = marks.map((mark) =>
      Object.keys(config.properties).filter((name) => mark in (config.properties[name] ?? {})),
    )
    return [type, ...marked.map((names) => names.join(' '))]
  })
  expect(found.sort(([one = ''], [other = '']) => (one < other ? -1 : 1))).toEqual(MARKS)
})
