import { expect, test } from 'vitest'
import { faultOfVariable } from './variable-names.ts'

test.each([
  ...[
    'PATH',
    'HOME',
    'XDG_CONFIG_HOME',
    'PROMPT_COMMAND',
    'BASH_ENV',
    'PS1',
    'ld_preload',
    'LD_LIBRARY_PATH',
  ],
  ...['GIT_COMMON_DIR', 'GIT_SSH_COMMAND', 'GIT_CONFIG_COUNT', 'GIT_PAGER', 'PYTHONUSERBASE', 'MAKEFLAGS'],
  ...['OPENSSL_CONF', 'PSQL_PAGER', 'NODE_OPTIONS', 'BROWSER', '_JAVA_OPTIONS', 'MAYFLY_SERVER'],
])('%s decides what runs, and is not set', (name) => {
  expect(faultOfVariable(name)).toBe('is a variable that mayfly does not set')
})

test.each([
  ...['GITHUB_TOKEN', 'GIT_PASSWORD', 'PGPASSWORD', 'PGSERVICEFILE', 'KUBECONFIG', 'AWS_ACCESS_KEY_ID'],
  ...[
    'AWS_SHARED_CREDENTIALS_FILE',
    'PIP_INDEX_URL',
    'NPM_CONFIG_USERCONFIG',
    'GOOGLE_APPLICATION_CREDENTIALS',
  ],
  ...[
    'NODE_AUTH_TOKEN',
    'CARGO_REGISTRY_TOKEN',
    'DOCKER_AUTH_CONFIG',
    'HOMEBREW_GITHUB_API_TOKEN',
    '_1ST_TOKEN',
  ],
])('%s may carry a credential', (name) => {
  expect(faultOfVariable(name)).toBeUndefined()
})

test.each(['', '1ST', 'A-B', 'A=B', 'A B', 'Ä', `A${'B'.repeat(128)}`])('%j is no name', (name) => {
  expect(faultOfVariable(name)).toBe('is not a valid variable name')
})
