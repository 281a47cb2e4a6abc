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
