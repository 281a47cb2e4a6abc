import { expect, test } from 'vitest'
import type { Kind } from '../../../../src/client/wire.ts'
import { findKinds } from './find-kinds.ts'

const kind = (type: string, title: string, gives = ''): Kind => ({
  type,
  title,
  revocation: 'exact',
  scopes: { help: '', examples: [], forms: [{ form: 'x', gives }] },
  config: {},
  params: {},
})
const KINDS = [
  kind('vault', 'Vault or OpenBao token'),
  kind('github', 'GitHub', 'read a repository'),
  kind('gitlab', 'GitLab project access token', 'clone a repository'),
  kind('gitea', 'Gitea or Forgejo access token'),
]
const found = (text: string) => findKinds(KINDS, text).map(({ type }) => type)

test('all of them by title, and those that begin with what was typed first', () => {
  expect(found('')).toEqual(['gitea', 'github', 'gitlab', 'vault'])
  expect(found('GITL')).toEqual(['gitlab'])
  expect(found('o')).toEqual(['gitea', 'gitlab', 'vault', 'github'])
})

test('also by what a credential may do', () => {
  expect(found('clone')).toEqual(['gitlab'])
  expect(found('(')).toEqual([])
})
