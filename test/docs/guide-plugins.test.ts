import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { newHome } from '../cli/support.ts'
import { startApp } from '../support/app.ts'
import { parrot } from '../support/plugin-artefact.ts'
import { installMayfly, runGuide } from './run-guide.ts'

test('docs/guides/plugins.md works as shown', async () => {
  const { home, env } = await newHome()
  const bin = join(home, 'bin')
  await installMayfly(bin)
  await writeFile(join(home, 'parrot.mjs'), await parrot())
  const app = await startApp({ ownIssuer: true })
  try {
    await runGuide('docs/guides/plugins.md', {
      env: {
        ...env,
        PATH: `${bin}:${env['PATH']}`,
        MAYFLY_SERVER: app.url,
        MAYFLY_DATA_DIR: app.directory,
      },
      cwd: home,
      replace: [],
    })
    expect((await app.core.store.plugins.find('parrot'))?.version).toBe('1.0.0')
  } finally {
    await app.close()
  }
})
