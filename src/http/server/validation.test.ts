import { describe, expect, test } from 'vitest'
import { ROUTES, type Route } from '../../api/routes.ts'
import { compileCoercing, compileReply, compileStrict } from './validation.ts'

/** The server compiles a schema with the first request that needs it, so that its boot finds no fault in one. */
describe.each(Object.entries<Route>(ROUTES))(
  'the schemas of %s',
  (_name, { params, query, headers, body, replies }) => {
    test('compile', () => {
      for (const schema of [params, query])
        if (schema !== undefined) expect(compileCoercing(schema)).toBeTypeOf('function')
      for (const schema of [headers, body])
        if (schema !== undefined) expect(compileStrict(schema)).toBeTypeOf('function')
      for (const schema of Object.values(replies)) expect(compileReply(schema)).toBeTypeOf('function')
    })
  },
)

test('a keyword that Ajv does not know is refused', () => {
  expect(() => compileStrict({ type: 'object', maxPropertis: 1 })).toThrow('unknown keyword: "maxPropertis"')
})
