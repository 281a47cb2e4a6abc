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
  ['anthropic', '', 'base_url', 'local local_user', 'base_url local local_user'],
  ['artifactory', 'token', 'base_url', 'ca local local_user', 'local local_user'],
  [
    'aws',
    'secret_access_key',
    'role_arn endpoint',
    'policies local local_user ca',
    'policies endpoint local local_user',
  ],
  [
    'azure',
    'client_secret private_key',
    'tenant_id client_id authority',
    'audience local local_user',
    'authority local local_user',
  ],
  ['cloudflare', 'token', 'base_url account_id', 'ca local local_user', 'local local_user'],
  ['dockerhub', 'password', 'base_url username', 'ca local local_user', 'local local_user'],
  ['doppler', 'token', 'base_url configs', 'ca local local_user', 'local local_user'],
  ['elasticsearch', 'password', 'base_url username', 'ca local local_user', 'local local_user'],
  ['gcp', 'key', 'service_account provider endpoint', 'local local_user', 'endpoint local local_user'],
  ['gitea', 'password', 'base_url username', 'ca local local_user', 'local local_user'],
  ['github', 'private_key', 'base_url', 'ca local local_user', 'local local_user'],
  ['gitlab', 'token', 'base_url projects', 'ca local local_user', 'local local_user'],
  ['grafana', 'token', 'base_url', 'ca local local_user', 'local local_user'],
  ['jwt', 'signing_key', '', '', ''],
  [
    'kubernetes',
    'token client_key',
    'server home',
    'ca audience local local_user',
    'audience local local_user',
  ],
  ['ldap', 'bind_password', 'url base', 'tls ca local local_user connect_url', 'tls local local_user'],
  ['mqtt', 'password', 'url', 'ca local local_user connect_url', 'local local_user'],
  [
    'mysql',
    'password',
    'host port',
    'tls ca local local_user connect_host connect_port',
    'tls local local_user',
  ],
  ['nats', 'signing_key', '', 'url', ''],
  [
    'oauth2',
    'client_secret private_key refresh_token subject_token',
    'token_endpoint',
    'assertion_audience subject_audience ca local local_user',
    'subject_audience local local_user',
  ],
  [
    'oauth2-revocable',
    'client_secret private_key refresh_token subject_token',
    'token_endpoint revocation_endpoint',
    'assertion_audience subject_audience ca local local_user',
    'subject_audience local local_user',
  ],
  ['openai', 'admin_key', 'base_url projects', 'ca local local_user', 'local local_user'],
  [
    'postgres',
    'password',
    'host port database',
    'tls ca local statements connect_host connect_port',
    'tls local statements',
  ],
  ['rabbitmq', 'password', 'url', 'ca local local_user amqp_url', 'local local_user'],
  [
    'redis',
    'password',
    'host port',
    'tls ca local local_user connect_host connect_port',
    'tls local local_user',
  ],
  ['registry', 'signing_key', '', 'address ca local local_user', 'local local_user'],
  ['sonarqube', 'token', 'base_url', 'ca local local_user', 'local local_user'],
  ['ssh', 'ca_key', 'ca_public_key', '', ''],
  ['tailscale', 'client_secret', 'base_url client_id tailnet', 'ca local local_user', 'local local_user'],
  ['terraform-cloud', 'token', 'base_url organization', 'ca local local_user', 'local local_user'],
  ['vault', 'secret_id token', 'address namespace', 'ca local local_user', 'local local_user'],
  ['vault-secret', 'secret_id token', 'address namespace', 'ca local local_user', 'local local_user'],
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
