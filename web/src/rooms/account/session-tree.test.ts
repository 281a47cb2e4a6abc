import { expect, test } from 'vitest'
import { type Session, treeOf } from './session-tree.ts'

const session = (id: string, method: Session['method'], allowed_by: string | null = null) =>
  ({ id, method, allowed_by }) as Session

test('commands stand under the session that allowed them, and last those whose session is over', () => {
  const tree = treeOf([
    session('ses_1', 'passkey'),
    session('ses_2', 'device', 'ses_9'),
    session('ses_3', 'browser', 'ses_1'),
    session('ses_4', 'sso'),
    session('ses_5', 'device', 'ses_1'),
    session('ses_6', 'device', 'ses_4'),
  ])
  expect(tree.map((one) => [one.session.id, ...one.commands.map(({ id }) => id)])).toEqual([
    ['ses_1', 'ses_3', 'ses_5'],
    ['ses_4', 'ses_6'],
    ['ses_2'],
  ])
})
