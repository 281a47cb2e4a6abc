import { expect, test } from 'vitest'
import { variablesOf } from './credential-variables.ts'

test('makes one variable for a token, or one for each field', () => {
  expect(variablesOf({ token: 't' }, 'demo')).toEqual({ DEMO_TOKEN: 't' })
  expect(variablesOf({ token: '{}', fields: { username: 'u', port: 5432 } }, 'my-db.1')).toEqual({
    MY_DB_1_USERNAME: 'u',
    MY_DB_1_PORT: '5432',
  })
  expect(variablesOf({ token: 't' }, '1st')).toEqual({ _1ST_TOKEN: 't' })
})
