import type { Handle, Issued } from '../../src/backends/kind.ts'
import { mqtt } from '../../src/backends/mqtt/kind.ts'
import { createTestHost } from '../support/host.ts'
import { startMosquitto } from '../support/mosquitto-server.ts'
import { run } from '../support/run-program.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

describeKind('mqtt', async (): Promise<OpenKind> => {
  const server = await startMosquitto()
  const { settings } = server
  const { host, logged } = createTestHost('mqtt')
  const publish = ['mosquitto_pub', '-V', '5', '-q', '1', '-m', 'hello', '-L']
  return {
    kind: mqtt as unknown as OpenKind['kind'],
    backend: await mqtt.open(settings, host),
    scopes: ['contract/*:write'],
    logged,
    // A port where nothing listens.
    unreachable: () => mqtt.open({ ...settings, url: 'mqtt://127.0.0.1:1' }, host),
    probe: {
      exists: async (handle: Handle) => {
        const { stdout, stderr } = await server.control('getClient', String(handle['username']))
        return !`${stdout}${stderr}`.includes('not found')
      },
      async use(issued: Issued) {
        const url = `${String(issued.fields?.['url'])}/contract/a`
        const { code, stderr } = await run([...publish, url], { PATH: process.env['PATH'] ?? '' })
        return code === 0 && stderr === ''
      },
    },
    close: () => server.stop(),
  }
})
