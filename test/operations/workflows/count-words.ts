/** The example that the documents name. */
export { default } from '../../../examples/workflows/count-words.ts'
