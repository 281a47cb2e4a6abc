import type { Handle, Issued } from '../../src/backends/kind.ts'
import { addressOf } from '../../src/backends/mqtt/config.ts'
import { mqtt } from '../../src/backends/mqtt/kind.ts'
import { createTestHost } from '../support/host.ts'
import { startMosquitto } from '../support/mosquitto-server.ts'
import { mosquittoTricks } from '../support/mosquitto-tricks.ts'
import { type RewritingProxy, startRewritingProxy } from '../support/rewriting-proxy.ts'
import { run } from '../support/run-program.ts'
import { describeKind } from './kind-contract.ts'
import type { OpenKind } from './open-kind.ts'

describeKind('mqtt', async (): Promise<OpenKind> => {
  const server = await startMosquitto()
  const { settings } = server
  const { host, logged } = createTestHost('mqtt')
  let proxy: RewritingProxy | undefined
  const publish = ['mosquitto_pub', '-V', '5', '-q', '1', '-m', 'hello', '-L']
  return {
    kind: mqtt as unknown as OpenKind['kind'],
    backend: await mqtt.open(settings, host),
    scopes: ['contract/*'],
    logged,
    // A port where nothing listens.
    tricks: await mosquittoTricks(server),
    async disarmed() {
      // The broker knows no such client, which Mayfly takes for gone.
      const other = { '"deleteClient","username":"mf_': '"deleteClient","username":"mg_' }
      proxy = await startRewritingProxy(addressOf(settings.url).port, other)
      return mqtt.open({ ...settings, url: `mqtt://127.0.0.1:${proxy.port}` }, host)
    },
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
    async close() {
      await proxy?.close()
      await server.stop()
    },
  }
})
