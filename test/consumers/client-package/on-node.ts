/** Runs the tour on Node and prints its result. */
import { tour } from './tour.ts'

process.stdout.write(JSON.stringify(await tour(JSON.parse(process.argv[2] ?? ''))))
