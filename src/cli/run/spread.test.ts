import { expect, test } from 'vitest'
import { readKindVariables } from '../project-file/kind-variables.ts'
import type { RequestedCredential } from '../project-file/requested-credential.ts'
import { parseTemplate } from '../project-file/template.ts'
import type { HeldCredential } from '../session/held-credential.ts'
import { isRenewable, variablesFor } from './deliver.ts'
import { type Obtained, withKindVariables } from './spread.ts'

const FIELDS = { username: 'u1', password: 'p1', kubeconfig: 'c1' }
const PG = { PGUSER: '{username}', PGPASSWORD: '{password}' }

function obtained(name: string, environment?: unknown, more: Partial<RequestedCredential> = {}): Obtained {
  const requested = { name, request: { backend: name }, isSpread: true, env: [], files: [], ...more }
  const credential = { token: 't1', fields: FIELDS } as unknown as HeldCredential
  const kind = requested.isSpread ? readKindVariables(environment) : undefined
  return { requested, set: '0', issuance: { credential, askedAt: 0, endsAt: 1 }, kind }
}

const mapping = (variable: string, field: string) => ({
  isSpread: false,
  env: [{ variable, value: parseTemplate(field) ?? { parts: [] } }],
})

function delivered(...all: Obtained[]) {
  return deliveredBeside({}, ...all)
}

function deliveredBeside(env: Record<string, string>, ...all: Obtained[]) {
  const notes: string[] = []
  const deliveries = withKindVariables(all, env, (text) => notes.push(text))
  const variables = deliveries.map(({ requested, issuance, spread }) =>
    variablesFor(requested, issuance.credential, spread),
  )
  return { deliveries, variables, notes }
}

test('sets the variables of the kind beside those of the fields', () => {
  const { variables, notes } = delivered(obtained('db', PG))
  const fields = { DB_USERNAME: 'u1', DB_PASSWORD: 'p1', DB_KUBECONFIG: 'c1' }
  expect([variables, notes]).toEqual([[{ ...fields, PGUSER: 'u1', PGPASSWORD: 'p1' }], []])
})

test('a kind without variables has those of the fields only', () => {
  expect(delivered(obtained('db')).variables).toEqual([
    { DB_USERNAME: 'u1', DB_PASSWORD: 'p1', DB_KUBECONFIG: 'c1' },
  ])
})

test('what is mapped by name wins, wherever it is mapped', () => {
  const { variables, notes } = delivered(
    obtained('db', PG),
    obtained('other', PG, mapping('PGUSER', 'kubeconfig')),
  )
  expect(variables).toEqual([expect.objectContaining({ PGPASSWORD: 'p1' }), { PGUSER: 'c1' }])
  expect([variables[0]?.['PGUSER'], notes]).toEqual([undefined, []])
})

test('of two credentials for the same variable neither sets it, and a note says so', () => {
  const { variables, notes } = delivered(
    obtained('a', PG),
    obtained('b', PG),
    obtained('c', { C_TOKEN: '{secret}' }),
  )
  expect(variables.map((one) => one['PGUSER'])).toEqual([undefined, undefined, undefined])
  expect(variables[1]).toMatchObject({ B_USERNAME: 'u1' })
  expect(variables[2]).toMatchObject({ C_TOKEN: 't1' })
  expect(notes).toEqual([expect.stringContaining('PGUSER'), expect.stringContaining('PGUSER')])
})

test('a kind with a file gets no copies in variables, and is renewed', () => {
  const { deliveries, variables } = delivered(obtained('k8s', { KUBECONFIG: { file: '{kubeconfig}' } }))
  expect(variables).toEqual([{}])
  expect(deliveries.map(({ requested }) => isRenewable(requested))).toEqual([true])
})

test('only notes a variable that the command does not know', () => {
  const { variables, notes } = delivered(obtained('db', { LD_PRELOAD: '/x.so' }))
  expect([variables[0]?.['LD_PRELOAD'], notes]).toEqual([
    undefined,
    [expect.stringContaining('"LD_PRELOAD"')],
  ])
  const mapped = delivered(
    obtained('db', { X_URL: '{host}' }),
    obtained('other', {}, mapping('X_URL', 'kubeconfig')),
  )
  expect(mapped.notes).toEqual([])
})

test('refuses a NUL byte in a variable without showing the value', () => {
  const one = obtained('db', { A_TOKEN: 'x\0{password}' })
  expect(() => delivered(one)).toThrow(/^db: the value for A_TOKEN contains a NUL byte\.$/)
})

const VAULT = { VAULT_ADDR: '{username}', VAULT_TOKEN: '{password}' }

test('sets an address beside a secret of the same program only', () => {
  expect(delivered(obtained('v', VAULT)).variables[0]).toMatchObject({ VAULT_ADDR: 'u1', VAULT_TOKEN: 'p1' })
  const { variables, notes } = delivered(
    obtained('v', { VAULT_ADDR: '{username}', OTHER_TOKEN: '{password}' }),
  )
  expect(variables[0]).toMatchObject({ OTHER_TOKEN: 'p1' })
  expect(variables[0]).not.toHaveProperty('VAULT_ADDR')
  expect(notes).toEqual(['mayfly: v: not set without a secret for the same program: VAULT_ADDR.'])
})

test('a secret that is mapped from the same credential goes with its address, one of another credential does not', () => {
  const token = mapping('VAULT_TOKEN', 'password')
  const own = delivered(obtained('v', VAULT, { ...token, isSpread: true }))
  expect(own.variables[0]).toMatchObject({ VAULT_ADDR: 'u1', VAULT_TOKEN: 'p1' })
  const { variables } = delivered(obtained('v', VAULT), obtained('other', {}, token))
  expect(variables[0]).not.toHaveProperty('VAULT_ADDR')
  expect(variables[1]).toMatchObject({ VAULT_TOKEN: 'p1' })
})

test('says which variables of the user it replaces', () => {
  const { variables, notes } = deliveredBeside(
    { PGUSER: 'me', PGPASSWORD: 'p1', PGHOST: 'h' },
    obtained('db', PG),
  )
  expect(variables[0]).toMatchObject({ PGUSER: 'u1', PGPASSWORD: 'p1' })
  expect(notes).toEqual(['mayfly: db: replaces what you had set: PGUSER.'])
})
