import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'

test('the unit starts a server that ended by a fault again, for ever', async () => {
  const unit = await readFile(new URL('../../packaging/mayfly.service', import.meta.url), 'utf8')
  const [, head, service] = unit.split(/^\[\w+\]$/m)
  // systemd.unit(5): 0 disables the limit of starts, after which a unit stays down.
  expect(head).toMatch(/^StartLimitIntervalSec=0$/m)
  expect(service).toMatch(/^Restart=on-failure$/m)
  expect(service).toMatch(/^RestartSec=2s$/m)
})

test('the unit of a proxy runs apart from the account that it serves, and begins no other run after somebody ended one', async () => {
  const unit = await readFile(new URL('../../packaging/mayfly-proxy@.service', import.meta.url), 'utf8')
  const [, , service = ''] = unit.split(/^\[\w+\]$/m)
  const of = (name: string) =>
    [...service.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value]) => value)
  expect(of('DynamicUser')).toEqual(['yes'])
  expect(of('User')).toEqual(['mayfly-proxy-%i'])
  // What it writes for the account is readable by its group; its own state is not.
  expect([of('Group'), of('UMask'), of('RuntimeDirectoryMode')]).toEqual([['%i'], ['0027'], ['0750']])
  expect(of('StateDirectoryMode')).toEqual(['0700'])
  expect(of('LimitCORE')).toEqual(['0'])
  expect(of('CapabilityBoundingSet')).toEqual([''])
  expect(of('RestartPreventExitStatus')).toEqual(['4 5'])
})
