"""What is not needed to train, evaluate and use the paper's six tasks: each folder is one thing, and can be deleted.

`EXTRAS` says what each adds to the core (see `elmo_tasks.hooks`), which imports an extra when one of these names is
asked for.
"""

from elmo_tasks.hooks import GOES_ON, RESUMED, CommandRow, Extra

EXTRAS = {
    "calibration": Extra(
        "probabilities that are as often right as they say",
        commands={
            "calibrate": CommandRow(
                "use a run",
                "find the temperature with which the probabilities of a run are right",
                "elmo-tasks calibrate runs/ner eng.testa --test eng.testb",
            ),
        },
    ),
    "server": Extra(
        "a server of runs, with a page for browsers",
        commands={
            "serve": CommandRow(
                "use a run",
                "serve runs to browsers and programs",
                "elmo-tasks serve runs/ner runs/sst5 --port 8000",
            ),
        },
        needs=("explain", "pretraining", "probes", "raw_text", "resolve", "samples", "vectors"),
    ),
    "allennlp": Extra(
        "archives, configs and scripts of AllenNLP, and the encoders of its models",
        commands={
            "import-allennlp": CommandRow(
                "use a run",
                "turn an AllenNLP archive into a run, or its config into one of ours",
                "elmo-tasks import-allennlp model.tar.gz runs/imported",
            ),
        },
        adds={
            "EncoderConfig": {
                "cnn": "encoders:NgramCnnConfig",
                "pass_through": "encoders:PassThroughConfig",
                "stacked_highway_bilstm": "encoders:StackedHighwayBiLstmConfig",
            },
            "CharacterEncoderConfig": {"lstm": "encoders:CharacterLstmConfig"},
            "foreign_key": {"allennlp": "allennlp_keys:answer"},
            "input_format": {"allennlp": "commands:FORMAT"},
        },
        needs=("other_tasks", "resolve", "transformers", "weights"),
    ),
    "compare": Extra(
        "systems side by side: significance, errors, plots",
        commands={
            "plot": CommandRow(
                "look at results",
                "draw the curves of runs and the weights of their layers",
                "elmo-tasks plot runs/ner --output ner.svg",
            ),
            "compare": CommandRow(
                "look at results",
                "compare systems on the same data, with intervals and tests of significance",
                "elmo-tasks compare runs/baseline runs/ner eng.testb",
            ),
            "errors": CommandRow(
                "look at results",
                "show what a system gets wrong: kinds of errors, confused labels, the worst examples",
                "elmo-tasks errors runs/ner eng.testb",
            ),
        },
    ),
    "studies": Extra(
        "many runs and one report; searches of hyperparameters",
        commands={
            "study": CommandRow(
                "many runs",
                "train every run of a table or figure: configs, changes, seeds and shares of the training data",
                "elmo-tasks study benchmarks",
                goes_on=GOES_ON,
            ),
            "report": CommandRow(
                "many runs",
                "write the tables and plots of a study, as Markdown",
                "elmo-tasks report runs/studies/benchmarks",
            ),
            "tune": CommandRow(
                "many runs",
                "search for the best values of a config's keys, on the validation data",
                "elmo-tasks tune tune_quick",
                goes_on=GOES_ON,
            ),
        },
        needs=("compare", "repeats"),
    ),
    "warm_start": Extra(
        "models that start with the weights of another run",
        adds={"first_weights": {"run": "warm_start:warm_start"}},
    ),
    "repeats": Extra(
        "a training for each of several seeds, or for each fold of a cross-validation",
        adds={
            "repeated_training": {
                "seeds": "repeats:train_seeds",
                "folds": "cross_validation:train_folds",
                "print_seeds": "repeats:print_summary",
                "print_folds": "report:print_report",
            }
        },
        needs=("calibration", "compare", "trackers"),
    ),
    "pretraining": Extra(
        "biLMs: training, fine-tuning, perplexity, scores of words",
        commands={
            "pretrain": CommandRow(
                "language models",
                "train a biLM on text, or fine-tune one",
                "elmo-tasks pretrain bilm/small -s runs/bilm",
                goes_on=RESUMED,
            ),
            "perplexity": CommandRow(
                "language models",
                "measure the perplexity of a biLM, with the full softmax",
                "elmo-tasks perplexity text.txt --bilm runs/bilm",
            ),
            "score": CommandRow(
                "language models",
                "show how surprising a biLM finds each word of a text, and which words it expects instead",
                "echo 'The keys to the cabinet is here.' | elmo-tasks score - --substitutes 5",
            ),
        },
        adds={
            "OptimizerConfig": {"muon": "muon:Muon"},
            "config_kind": {"corpus": "pretraining_config:PretrainingConfig"},
        },
        needs=("raw_text", "tables"),
    ),
    "probes": Extra(
        "what the layers of a biLM know: labels, senses, neighbours, similarity",
        commands={
            "similarity": CommandRow(
                "language models",
                "compare the vectors of a word in several sentences, layer by layer",
                'elmo-tasks similarity bank "He sat on the bank of the river." "The bank closed."',
            ),
            "neighbors": CommandRow(
                "language models",
                "find the tokens with the most similar vectors, layer by layer",
                'elmo-tasks neighbors "The dog let out a sharp bark ." --word bark --pool sentences.txt',
            ),
            "probe": CommandRow(
                "language models",
                "measure what each layer of a biLM knows: word senses, parts of speech, or labels of your own",
                "elmo-tasks probe train.conllu --test test.conllu",
            ),
        },
        needs=("raw_text", "samples"),
    ),
    "vectors": Extra(
        "vectors of sentences and of files",
        commands={
            "embed": CommandRow(
                "language models",
                "write the biLM vectors of a text",
                "elmo-tasks embed sentences.txt --output vectors.hdf5 --bilm bilm",
            ),
        },
        needs=("engines", "raw_text"),
    ),
    "weights": Extra(
        "biLMs as others publish them: addresses, zip archives of NLPL, ELMoForManyLangs",
        commands={
            "fetch": CommandRow(
                "language models",
                "download a published biLM, and print where it is",
                "elmo-tasks fetch original",
            ),
        },
        adds={
            "bilm_format": {"zip": "foreign_files:ZIP", "many_langs": "many_langs:MANY_LANGS"},
            "bilm_names": {"allennlp": "allennlp_names:rename_bilm"},
            "token_encoder": {"lexicon": "many_langs:LexiconEncoder"},
            "published_file": {"bilm": "commands:published_file"},
        },
    ),
    "advice": Extra(
        "what data are like, and warnings of what will hurt a training",
        commands={
            "data": CommandRow(
                "configs and data",
                "describe the data of a config, and warn about likely problems",
                "elmo-tasks data ner_conll03",
            ),
        },
        adds={
            "training_check": {"data": "data_analysis:check_before_training"},
            "result_check": {"floor": "data_analysis:judge"},
            "text_check": {"language": "language:language_check"},
        },
    ),
    "samples": Extra(
        "small real data sets for trying things out",
        commands={
            "sample-data": CommandRow(
                "configs and data",
                "write small real data sets for trying things out",
                "elmo-tasks sample-data data --task ner",
            ),
        },
        adds={"missing_data": {"samples": "commands:missing_data"}},
    ),
    "other_tasks": Extra(
        "beyond the paper: plain taggers and classifiers, plain BiDAF, more data sets",
        adds={
            "DatasetReaderConfig": {
                "conllu": "conllu:ConlluConfig",
                "ner_conll2012": "conll:NerConll2012Config",
                "predicates": "conll:PredicatesConfig",
                "srl_conll2005": "conll:SrlConll2005Config",
            },
            "ModelConfig": {
                "bidaf": "bidaf:BidafConfig",
                "decomposable_attention": "decomposable_attention:DecomposableAttentionConfig",
                "linear_classifier": "linear_classifier:LinearClassifierConfig",
                "simple_tagger": "simple_tagger:SimpleTaggerConfig",
                "text_classifier": "text_classifier:TextClassifierConfig",
            },
        },
    ),
    "transformers": Extra(
        "frozen transformers as embedders, and heads on them",
        adds={
            "ModelConfig": {"srl_bert": "srl_bert:SrlBertConfig"},
            "FrozenLayersConfig": {"transformer": "transformer:TransformerConfig"},
            "frozen_model": {"transformer": "transformer_files:RunTransformer"},
        },
    ),
    "annotation": Extra(
        "exports of annotation tools, in and out",
        adds={
            "DatasetReaderConfig": {"spans": "spans:SpansConfig"},
            "output_format": {
                "doccano": "formats:DOCCANO",
                "label-studio": "formats:LABEL_STUDIO",
                "brat": "formats:BRAT",
                "spacy": "formats:SPACY",
            },
        },
    ),
    "export": Extra(
        "biLMs and taggers as ONNX graphs, for machines and browsers without torch",
        commands={
            "export": CommandRow(
                "use a run",
                "write a biLM or a tagger for machines and browsers without torch",
                "elmo-tasks export pos pos_onnx",
            ),
        },
        needs=("raw_text", "server"),
    ),
    "tables": Extra(
        "spreadsheets and tables as people have them, in and out",
        adds={
            "DatasetReaderConfig": {"delimited": "delimited:DelimitedConfig"},
            "result_file": dict.fromkeys((".csv", ".tsv", ".xlsx", ".parquet"), "table_rows:result_table"),
        },
    ),
    "engines": Extra(
        "Arrow functions for Ray Data and Spark, and folders of Parquet parts",
        adds={"result_folder": {"parquet": "commands:PARQUET"}},
        needs=("raw_text", "vectors"),
    ),
    "ensembles": Extra("several runs as one", adds={"several_runs": {"mean": "ensemble:load_ensemble"}}),
    "trackers": Extra("the curves of trainings", adds={"callback": {"trackers": "trackers:Trackers"}}),
    "explain": Extra("which tokens count for a result", adds={"explanation": {"saliency": "saliency:explain"}}),
    "html": Extra("results as pages for browsers and notebooks", adds={"page": {"html": "html:open_page"}}),
    "resolve": Extra(
        "texts with each mention replaced by the name that it stands for",
        adds={"result_change": {"resolve": "resolution:adding_resolved"}},
    ),
    "augment": Extra(
        "copies of training sentences as people type them",
        adds={"Augmentation": {"changed_copies": "augmentation:ChangedCopies"}},
    ),
    "raw_text": Extra(
        "raw text for a biLM: options of commands, lines, and tokens of any language",
        adds={"TokenizerConfig": {"regex": "tokenizers:RegexConfig", "unicode": "tokenizers:UnicodeConfig"}},
    ),
    "sklearn": Extra("estimators of scikit-learn", needs=("raw_text", "vectors")),
    "spacy": Extra("components of spaCy", needs=("resolve", "vectors")),
    "teaching": Extra("checks of the course's exercises", needs=("pretraining",)),
}
