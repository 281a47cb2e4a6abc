import { expect, test } from 'vitest'
import { kinds } from '../../backends/index.ts'
import { isConventional, isOrdinaryField, strayAddresses } from './conventional-variables.ts'

test.each([
  ...[
    'token',
    'password',
    'username',
    'host',
    'port',
    'url',
    'database',
    'region',
    'sslmode',
    'namespace',
    'ca',
  ],
  ...[
    'access_key_id',
    'secret_access_key',
    'session_token',
    'api-key',
    'encoded_key',
    'client_id',
    'seed',
    'jwt',
  ],
])('the field %s gets a variable', (field) => expect(isOrdinaryField(field)).toBe(true))

test.each([
  ...[
    'connect_prog',
    'password_command',
    'trace',
    'ssh_command',
    'rsh',
    'preload',
    'options',
    'config',
    'dir',
  ],
  ...[
    'index_url',
    'proxy',
    'askpass',
    'editor',
    'pager',
    'path',
    'home',
    'cert_file',
    'key\n',
    'x_y',
    '',
    '__proto__',
  ],
])('the field %j, which may name a command or a setting, gets none', (field) =>
  expect(isOrdinaryField(field)).toBe(false),
)

test('a kind may set a constant to its one text, and to no other', () => {
  expect(isConventional('ANTHROPIC_CUSTOM_HEADERS', 'anthropic-beta: oauth-2025-04-20')).toBe(true)
  expect(isConventional('ANTHROPIC_CUSTOM_HEADERS', 'anthropic-beta: oauth-2025-04-20\nx: y')).toBe(false)
  expect(isConventional('ANTHROPIC_CUSTOM_HEADERS', '{secret}')).toBe(false)
})

test('every variable of a built-in kind is one that the command sets', () => {
  for (const { type, environment = {} } of kinds)
    for (const [name, form] of Object.entries(environment))
      expect(isConventional(name, typeof form === 'string' ? form : form.file), `${type} ${name}`).toBe(true)
})

const stray = (wanted: Record<string, string>, env: Record<string, string> = {}) =>
  strayAddresses(wanted, env, 'X_')

test.each([
  ['no secret at all', { VAULT_ADDR: 'a' }, {}],
  ['the secret of another program', { GITLAB_HOST: 'a', GITHUB_TOKEN: 't' }, {}],
  ['the user has the secret', { PGHOST: 'a' }, { PGPASSWORD: 'p' }],
  ['an empty secret', { VAULT_ADDR: 'a', VAULT_TOKEN: '' }, { VAULT_TOKEN: 't' }],
  ['the program prefers a secret of the user', { GITLAB_HOST: 'a', OAUTH_TOKEN: 't' }, { GITLAB_TOKEN: 'u' }],
  ['bao prefers the user’s', { VAULT_ADDR: 'a', VAULT_TOKEN: 't' }, { BAO_TOKEN: 'u' }],
  ['the program sends all', { NATS_URL: 'a', NATS_CREDS: 'f' }, { NATS_PASSWORD: 'u' }],
  ['a URL without a password', { AMQP_URL: 'amqp://a' }, {}],
  ['an address of a field alone', { X_HOST: 'a', X_USERNAME: 'u' }, { X_TOKEN: 'mine' }],
  ['a program that has no such secret', { DOCKER_HOST: 'a', DOCKER_TOKEN: 't' }, {}],
])('keeps back an address: %s', (_, wanted, env) => {
  expect(stray(wanted as never, env as never)).toEqual([Object.keys(wanted)[0]])
})

test.each([
  ['its own secret', { PGHOST: 'a', PGUSER: 'u', PGPASSWORD: 'p' }, {}],
  ['it replaces the user’s', { VAULT_ADDR: 'a', VAULT_TOKEN: 't' }, { VAULT_TOKEN: 'u', VAULT_ADDR: 'b' }],
  ['the program prefers it', { GITLAB_HOST: 'a', GITLAB_TOKEN: 't' }, { OAUTH_TOKEN: 'u' }],
  ['a URL with its password', { AMQP_URL: 'amqps://u:p@a/v' }, {}],
  ['fields with a secret', { X_HOST: 'a', X_PASSWORD: 'p' }, {}],
  ['no address', { GITHUB_TOKEN: 't', X_USERNAME: 'u' }, {}],
])('lets an address pass: %s', (_, wanted, env) => {
  expect(stray(wanted as never, env as never)).toEqual([])
})
