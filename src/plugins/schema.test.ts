import Type from 'typebox'
import { Value } from 'typebox/value'
import { describe, expect, it } from 'vitest'
import { kinds } from '../backends/index.ts'
import { readSchema } from './schema.ts'

const object = (properties: object, more: object = {}) => ({
  type: 'object',
  properties,
  additionalProperties: false,
  ...more,
})

describe('the schema of a plugin', () => {
  it('is, sent as JSON, what the kind has', () => {
    const names = ['redis', 'mysql', 'vault', 'aws', 'rabbitmq']
    for (const { config, type } of kinds.filter((kind) => names.includes(kind.type))) {
      const sent = JSON.parse(JSON.stringify(config))
      let read: ReturnType<typeof readSchema>
      try {
        read = readSchema(sent, 'configuration')
      } catch (error) {
        // The patterns of built-in kinds may be of any form.
        expect(String(error), type).toContain('too complex')
        continue
      }
      expect(JSON.parse(JSON.stringify(read))).toEqual(sent)
      expect(Value.Default(read, {})).toEqual(Value.Default(config, {}))
    }
  })

  it('fills in defaults, and refuses what is unknown or missing', () => {
    const read = readSchema(
      object(
        { mode: { enum: ['a', 'b'], default: 'a' }, port: { type: 'integer', minimum: 1 } },
        { required: ['port'] },
      ),
      'configuration',
    )
    expect(Value.Default(read, { port: 1 })).toEqual({ port: 1, mode: 'a' })
    expect(Value.Check(read, { port: 1, mode: 'b' })).toBe(true)
    for (const wrong of [{}, { port: 0 }, { port: 1, mode: 'c' }, { port: 1, more: 1 }, { port: '1' }])
      expect(Value.Check(read, wrong)).toBe(false)
    expect(JSON.stringify(read)).toBe(
      JSON.stringify(
        Type.Object(
          {
            mode: Type.Optional(Type.Union([Type.Literal('a'), Type.Literal('b')], { default: 'a' })),
            port: Type.Integer({ minimum: 1 }),
          },
          { additionalProperties: false },
        ),
      ),
    )
  })

  it.each([
    [[], 'no object'],
    [{ type: 'string' }, 'no object'],
    [{ type: 'object', properties: {} }, '"additionalProperties": false'],
    [object({ a: { $ref: '#' } }), 'a keyword for a that Mayfly does not know'],
    [object({ a: { type: 'string', format: 'regex' } }), 'a keyword for a'],
    [object({ a: { type: 'string', pattern: '(a+)+' } }), 'too complex'],
    [object({ a: {} }), 'no type for a'],
    [object({ a: { type: 'null' } }), 'an unknown type for a'],
    [object({ 'a b': { type: 'string' } }), 'whose name is not one'],
    [object({ ['__proto__']: { type: 'string' } }), 'whose name is not one'],
    [object({ a: { type: 'integer', 'x-secret': true } }), 'marks a as secret, which is no text'],
    [object({ a: { type: 'string', 'x-secret': 'yes' } }), 'a wrong "x-secret" for a'],
    [object({ a: { type: 'string', 'x-guarded': { safe: [{}] } } }), 'a wrong "x-guarded" for a'],
    [object({ a: object({ b: { type: 'string', 'x-secret': true } }) }), 'marks b, which is no field'],
    [object({ a: { type: 'string', description: 'x\u001b[2J' } }), 'a wrong "description" for a'],
    [object({ a: { enum: [{}] } }), 'wrong choices for a'],
    [object({}, { required: ['a'] }), 'requires fields for configuration'],
    [
      object(Object.fromEntries(Array.from({ length: 65 }, (_, at) => [`f${at}`, { type: 'string' }]))),
      'too many',
    ],
  ])('is refused: %j', (schema, says) => {
    expect(() => readSchema(schema, 'configuration')).toThrow(says)
  })
})
