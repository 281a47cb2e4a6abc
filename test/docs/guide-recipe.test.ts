import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newHome } from '../cli/support.ts'
import { startAcme } from '../support/fakes/acme-guide.ts'
import { freePort } from '../support/free-port.ts'
import { installMayfly, runGuide } from './run-guide.ts'

test('docs/guides/write-a-recipe.md works as shown', async () => {
  const { home, env } = await newHome()
  const bin = join(home, 'bin')
  await mkdir(join(home, 'recipes'))
  await installMayfly(bin)
  const acme = await startAcme('acme-admin-0123456789')
  try {
    await runGuide('docs/guides/write-a-recipe.md', {
      env: { ...env, PATH: `${bin}:${env['PATH']}` },
      cwd: home,
      replace: [
        ['http://127.0.0.1:9000', acme.api.url],
        ['8700', String(await freePort())],
      ],
    })
    // It has issued one key, which is gone.
    expect(acme.api.seen.filter((one) => one.startsWith('POST '))).toHaveLength(1)
    expect(acme.keys.size).toBe(0)
  } finally {
    await acme.api.close()
  }
})
