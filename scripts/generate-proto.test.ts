import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { isInstalled } from '../test/support/run-program.ts'
import { generateProto, PROTO } from './generate-proto.ts'

it.skipIf(!isInstalled('protoc'))('the generated code of the protocol is that of its .proto files', () => {
  const generated = generateProto()
  expect([...generated.keys()].sort()).toEqual([
    'creddy_plugin_v1_pb.ts',
    'go_plugin_pb.ts',
    'health_pb.ts',
    'mayfly_plugin_v1_pb.ts',
  ])
  for (const [name, text] of generated) expect(readFileSync(join(PROTO, name), 'utf8'), name).toBe(text)
})
