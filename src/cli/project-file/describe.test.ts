import { expect, test } from 'vitest'
import { describeChange, describeProject } from './describe.ts'
import { readProjectFile } from './read.ts'

const read = (text: string) =>
  readProjectFile({ path: '/x/.mayfly.yaml', shown: '.mayfly.yaml', bytes: Buffer.from(text) })

const BEFORE = `
credentials:
  orders:
    backend: orders-db
    ttl: 15m
    scopes: [orders:read]
    params: { database: orders }
    metadata: { why: nightly }
    env: { PGHOST: host, PGURL: "{{host}}:{{port}}" }
  reports:
`

test('says everything that a file asks for, each on one line', async () => {
  const text = `${BEFORE}    files:
      KUBECONFIG: "\\n  reports\\n\\\\$ echo {{token}}"
      KEY: { name: key.pem, content: private_key }
`
  expect(describeProject(await read(text))).toBe(
    [
      'orders',
      '  backend: orders-db',
      '  ttl: 15m',
      '  scopes: ["orders:read"]',
      '  params: {"database":"orders"}',
      '  metadata: {"why":"nightly"}',
      '  env PGHOST: host',
      '  env PGURL: "{{host}}:{{port}}"',
      'reports',
      '  backend: reports',
      String.raw`  file KUBECONFIG: KUBECONFIG with "\n  reports\n\\$ echo {{token}}"`,
      '  file KEY: key.pem with private_key',
    ].join('\n'),
  )
})

test('marks what is new and what is gone', async () => {
  const now = `
credentials:
  orders:
    backend: orders-db
    ttl: 1h
    scopes: [orders:read]
    params: { database: orders }
    metadata: { why: nightly }
    env: { PGHOST: "{{ host }}", PGSERVICE: host }
  more:
`
  expect(describeChange(await read(BEFORE), await read(now))).toBe(
    [
      '  orders',
      '-   ttl: 15m',
      '-   env PGURL: "{{host}}:{{port}}"',
      '    backend: orders-db',
      '+   ttl: 1h',
      '    scopes: ["orders:read"]',
      '    params: {"database":"orders"}',
      '    metadata: {"why":"nightly"}',
      '    env PGHOST: host',
      '+   env PGSERVICE: host',
      '+ more',
      '+   backend: more',
      '+   env: all fields, and the variables of its kind',
      '- reports',
      '-   backend: reports',
      '-   env: all fields, and the variables of its kind',
    ].join('\n'),
  )
})

test('marks nothing where only the layout differs', async () => {
  const change = describeChange(await read(BEFORE), await read(`# A comment.\n${BEFORE}`))
  expect(change).not.toMatch(/^[+-]/m)
})
