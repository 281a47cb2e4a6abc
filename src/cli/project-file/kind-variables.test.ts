import { expect, test } from 'vitest'
import { MayflyError } from '../../client/errors.ts'
import type { BackendInfo } from '../../client/wire.ts'
import { isConventional } from '../frame/conventional-variables.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import { askKindVariables, readKindVariables, variablesWithin } from './kind-variables.ts'

test.each(['PGPASSWORD', 'AWS_ACCESS_KEY_ID', 'GITHUB_TOKEN', 'OPENAI_API_KEY', 'KUBECONFIG', 'MYSQL_PWD'])(
  'a kind may name %s',
  (name) => expect(isConventional(name, '{secret}')).toBe(true),
)

test.each([
  [
    'what decides which program runs',
    ['PATH', 'LD_PRELOAD', 'NODE_OPTIONS', 'GIT_SSH_COMMAND', 'PAGER', 'BASH_ENV'],
  ],
  [
    'what sends a program elsewhere',
    ['HTTPS_PROXY', 'all_proxy', 'PIP_INDEX_URL', 'DOCKER_HOST', 'X_BASE_URL'],
  ],
  ['whom a program trusts', ['SSL_CERT_FILE', 'NODE_EXTRA_CA_CERTS', 'NODE_TLS_REJECT_UNAUTHORIZED']],
  [
    'where a program finds its settings',
    ['AWS_CONFIG_FILE', 'DOCKER_CONFIG', 'XDG_CONFIG_HOME', 'PGSYSCONFDIR'],
  ],
  ['variables of Mayfly', ['MAYFLY_TOKEN', 'MAYFLY_CLIENT_SECRET']],
  [
    'no names',
    ['', 'A B_TOKEN', 'x=y_TOKEN', '../_TOKEN', '_TOKEN', 'a_TOKEN', 'X_TOKEN\n', `${'A'.repeat(140)}_TOKEN`],
  ],
])('a kind may not name %s', (_, names) => {
  expect(names.filter((name) => isConventional(name, '{secret}'))).toEqual([])
})

test('reads variables and files, and sets apart those that the command does not know', () => {
  const read = readKindVariables({
    PGUSER: '{username}',
    KUBECONFIG: { file: '{config}' },
    LD_PRELOAD: '/x.so',
  })
  expect(read).toEqual({
    env: [{ variable: 'PGUSER', value: { parts: [{ field: 'username' }] }, mayLast: true }],
    files: [
      {
        variable: 'KUBECONFIG',
        fileName: 'KUBECONFIG',
        content: { parts: [{ field: 'config' }] },
        isChecked: true,
      },
    ],
    unknown: ['LD_PRELOAD'],
  })
})

const many = Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`A${index}_TOKEN`, '']))
test.each([
  [null],
  ['text'],
  [{ PGUSER: 5 }],
  [{ PGUSER: null }],
  [{ PGUSER: { file: 5 } }],
  [{ PGUSER: {} }],
  [many],
])('refuses %j', (environment) => expect(() => readKindVariables(environment)).toThrow(/cannot be read/))

test('leaves out what the credential lacks', () => {
  const kind = readKindVariables({ PGUSER: '{username}', PGHOST: '{host}:{port}', A_TOKEN: '{secret}' })
  const held = { token: 't', fields: { username: 'u', host: 'h' } } as unknown as HeldCredential
  expect(variablesWithin(kind, held).env.map(({ variable }) => variable)).toEqual(['PGUSER', 'A_TOKEN'])
})

test('asks for the variables of a backend; one that is not there has none', async () => {
  const replying = (reply: () => unknown) => ({ backend: async () => reply() as BackendInfo })
  const refusing = (status: number) =>
    replying(() => {
      throw new MayflyError({ code: 'backend_not_found', status, message: 'no' })
    })
  const none = { env: [], files: [], unknown: [] }
  expect(
    await askKindVariables(
      replying(() => ({ id: 'db' })),
      'db',
    ),
  ).toEqual(none)
  expect(await askKindVariables(refusing(404), 'db')).toEqual(none)
  await expect(askKindVariables(refusing(503), 'db')).rejects.toThrow('no')
})
