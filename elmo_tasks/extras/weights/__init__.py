"""BiLMs as others publish them: addresses, zip archives of NLPL, ELMoForManyLangs."""
