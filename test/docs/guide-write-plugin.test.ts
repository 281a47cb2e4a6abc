import { execFileSync } from 'node:child_process'
import { chmod, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { shellQuote } from '../../src/domain/formats/shell-word.ts'
import { startWorld } from '../cli/support.ts'
import { freePort } from '../support/free-port.ts'
import { buildMayfly } from '../support/plugin-package.ts'
import { installMayfly, runGuide } from './run-guide.ts'

/** An `npm` whose `install` links what this checkout has, and fetches nothing. */
async function installNpm(bin: string): Promise<void> {
  const real = execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim()
  const link = fileURLToPath(new URL('../support/plugin-package.ts', import.meta.url))
  const install = `exec ${shellQuote(process.execPath)} ${shellQuote(link)} "$PWD"`
  const path = join(bin, 'npm')
  await writeFile(path, `#!/bin/sh\n[ "$1" != install ] || ${install}\nexec ${shellQuote(real)} "$@"\n`)
  await chmod(path, 0o755)
}

test('docs/guides/write-a-plugin.md works as shown', async () => {
  buildMayfly()
  const world = await startWorld({ jobs: true })
  try {
    const bin = join(world.home, 'bin')
    await installMayfly(bin)
    await installNpm(bin)
    await runGuide('docs/guides/write-a-plugin.md', {
      env: {
        ...world.bareEnv,
        PATH: `${bin}:${dirname(process.execPath)}:${world.bareEnv['PATH']}`,
        MAYFLY_SERVER: world.url,
        MAYFLY_DATA_DIR: world.app.directory,
      },
      cwd: world.home,
      replace: [['9000', String(await freePort())]],
    })
    const { body } = await world.app.admin('GET', '/v1/admin/audit?action=credential.issued')
    expect(body).toEqual([expect.objectContaining({ outcome: 'ok' })])
  } finally {
    await world.close()
  }
})
