/** Runs the tour on Node, and prints what came of it. */
import { tour } from './tour.ts'

process.stdout.write(JSON.stringify(await tour(JSON.parse(process.argv[2] ?? ''))))
